// All that can be read on the page, what is folded away and what figures say among it.
(() => {
  document.querySelectorAll("details").forEach((each) => (each.open = true));
  const figures = [...document.querySelectorAll("svg")].filter((svg) => svg.checkVisibility());
  const drawn = figures.flatMap((svg) => [...svg.querySelectorAll("text,title,desc")]);
  return document.body.innerText + "\n" + drawn.map((each) => each.textContent).join("\n");
})();
