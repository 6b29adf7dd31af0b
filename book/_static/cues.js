// Boxes that scroll sideways say so: a fade at the edge where more follows, and a tab stop with a name.

const SCROLLING = [
  ".bd-article pre",
  ".bd-article .output",
  ".bd-article div.math",
  ".bd-article .pst-scrollable-table-container",
  ".bd-article table.indextable",
].join(", ");

function showCue(box) {
  const hidden = box.scrollWidth - box.clientWidth;
  const scrolls = hidden > 1 && ["auto", "scroll"].includes(getComputedStyle(box).overflowX);
  if (!scrolls) {
    if (!box.dataset.cut) return;
    for (const name of ["data-cut", "tabindex", "role", "aria-label"]) box.removeAttribute(name);
    return;
  }
  const left = box.scrollLeft > 1;
  const right = box.scrollLeft < hidden - 1;
  if (!box.dataset.cut) {
    box.setAttribute("tabindex", "0");
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", `${nameOf(box)}, scrolls sideways`);
  }
  box.dataset.cut = left && right ? "both" : left ? "left" : "right";
}

function nameOf(box) {
  if (box.matches("div.math")) return "Equation";
  if (box.matches(".cell_output *")) return "Output";
  return box.matches("pre") ? "Code" : "Table";
}

document.addEventListener("DOMContentLoaded", () => {
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const box = target.closest(SCROLLING); // may be target itself; none if it was taken out of the page
      if (box) showCue(box);
    }
  });
  for (const box of document.querySelectorAll(SCROLLING)) {
    box.addEventListener("scroll", () => showCue(box), { passive: true });
    sizes.observe(box);
    // Formulas are set later and pictures come later: what is inside grows, the box does not.
    for (const child of box.children) sizes.observe(child);
    if (box.matches("div.math")) {
      new MutationObserver(() => showCue(box)).observe(box, { childList: true, subtree: true });
    }
  }
  // A typeface that comes later changes how wide the text is, and no box.
  document.fonts.ready.then(() => document.querySelectorAll(SCROLLING).forEach(showCue));
});
