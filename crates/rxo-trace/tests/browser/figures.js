// What is wrong with the figures as they are shown: none or two drawings, no size, text that
// leaves the drawing or is too small to read; and whether the page is wider than the window.
(() => {
  const faults = [];
  const figures = [...document.querySelectorAll("figure")];
  for (const figure of figures) {
    const name = figure.querySelector("figcaption").textContent;
    const shown = [...figure.querySelectorAll("svg")].filter((svg) => {
      const box = svg.getBoundingClientRect();
      return box.width >= 200 && box.height >= 50;
    });
    if (shown.length !== 1) {
      faults.push(`${name}: ${shown.length} drawings`);
      continue;
    }
    const svg = shown[0];
    const whole = svg.getBoundingClientRect();
    if (!svg.querySelector(":scope > title")?.textContent) faults.push(`${name}: no title`);
    if (!svg.querySelector(":scope > desc")?.textContent) faults.push(`${name}: no description`);
    if (!svg.querySelector("path,rect,polyline")) faults.push(`${name}: nothing drawn`);
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      const out = box.left < whole.left - 1 || box.right > whole.right + 1
        || box.top < whole.top - 1 || box.bottom > whole.bottom + 1;
      if (out) faults.push(`${name}: "${text.textContent}" leaves the drawing`);
      if (box.height < 10) faults.push(`${name}: "${text.textContent}" is ${box.height} px high`);
    }
  }
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) faults.push(`the page is ${root.scrollWidth} wide`);
  return { figures: figures.length, faults };
})();
