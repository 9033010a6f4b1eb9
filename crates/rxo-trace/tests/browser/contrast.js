// Every visible text of the page whose contrast to what is behind it is below WCAG 2.2 AA (4.5:1,
// 3:1 for large type), and every mark of a figure below 3:1. Computed from computed styles.
(() => {
  const parse = (text) => {
    const parts = text.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  };
  const over = (top, alpha, below) => top.map((part, i) => part * alpha + below[i] * (1 - alpha));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const layer = parse(getComputedStyle(at).backgroundColor);
      layers.push(layer);
      if (layer.alpha === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer.rgb, layer.alpha, below), [0, 0, 0]);
  };
  const visible = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  };
  const faults = [];
  let checked = 0;
  const check = (what, colour, behind, least) => {
    checked += 1;
    const ratio = contrast(colour, behind);
    if (!(ratio >= least)) faults.push(`${what}: ${ratio.toFixed(2)} of ${least}`);
  };
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !visible(element) || element.closest("title,desc,script")) continue;
    const style = getComputedStyle(element);
    const name = `${element.tagName} "${element.textContent.slice(0, 40)}"`;
    if (element instanceof SVGElement) {
      let behind = ground(element.ownerSVGElement);
      const before = element.previousElementSibling;
      if (element.classList.contains("fig-cell-value") && before) {
        const cell = getComputedStyle(before);
        behind = over(parse(cell.fill).rgb, Number(cell.fillOpacity), behind);
      }
      check(name, parse(style.fill).rgb, behind, 4.5);
    } else {
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      const behind = ground(element);
      const colour = parse(style.color);
      check(name, over(colour.rgb, colour.alpha, behind), behind, large ? 3 : 4.5);
    }
  }
  for (const mark of document.querySelectorAll(".fig-line,.fig-solid,.fig-guide")) {
    if (!visible(mark.ownerSVGElement)) continue;
    const style = getComputedStyle(mark);
    const colour = style.fill === "none" || mark.tagName === "line" ? style.stroke : style.fill;
    check(`mark ${mark.getAttribute("class")}`, parse(colour).rgb, ground(mark.ownerSVGElement), 3);
  }
  return { checked, faults };
})();
