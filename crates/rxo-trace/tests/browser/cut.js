// What cannot be seen whole: a box with more in it than it shows, or text beyond the window's edge.
(() => {
  const faults = [];
  const name = (element) => `${element.tagName}.${element.className} "${element.textContent.trim().slice(0, 40)}"`;
  for (const element of document.body.querySelectorAll("*:not(svg *)")) {
    if (!element.checkVisibility() || element.tagName === "BR") continue;
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (box.width === 0 || box.height === 0) continue;
    const clips = style.overflowX !== "visible" || ["TD", "TH", "DD", "DT"].includes(element.tagName);
    if (clips && element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0) {
      faults.push(`${name(element)}: ${element.scrollWidth} px in ${element.clientWidth}`);
    }
    if (box.left < -1 || box.right > innerWidth + 1) {
      faults.push(`${name(element)}: from ${box.left} to ${box.right} of ${innerWidth}`);
    }
  }
  return { tables: document.querySelectorAll("table").length, faults: faults.slice(0, 8) };
})();
