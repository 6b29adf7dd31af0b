// One slide at a time, made as large as fits its frame. Arrows, space and page keys turn; S shows the notes.
const slides = [...document.querySelectorAll("section")];
const LARGEST = 1.6, SMALLEST = 0.5;

function fit(slide) {
  const inner = slide.firstElementChild;
  inner.style.transform = "none";
  inner.style.width = `${slide.clientWidth}px`;
  for (let scale = LARGEST; scale >= SMALLEST; scale -= 0.05) {
    inner.classList.toggle("grown", scale > 1); // what is printed wraps only where it has to
    // A smaller slide has room for longer lines, so what is wide wraps less.
    inner.style.width = `${slide.clientWidth / scale}px`;
    inner.style.transform = `scale(${scale})`;
    if (inner.scrollHeight * scale <= slide.clientHeight && inner.scrollWidth * scale <= slide.clientWidth + 1) return;
  }
}

function show(number) {
  const place = Math.min(Math.max(number, 0), slides.length - 1);
  slides.forEach((slide, i) => slide.classList.toggle("shown", i === place));
  document.querySelector("footer").textContent = `${place + 1} / ${slides.length}`;
  history.replaceState(null, "", `#${place + 1}`);
  fit(slides[place]);
}

const here = () => slides.findIndex((slide) => slide.classList.contains("shown"));
const STEPS = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };

addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key in STEPS) show(here() + STEPS[event.key]);
  else if (event.key === "Home") show(0);
  else if (event.key === "End") show(slides.length - 1);
  else if (event.key.toLowerCase() === "s") document.body.classList.toggle("with-notes");
  else return;
  event.preventDefault();
  fit(slides[here()]);
});
addEventListener("click", (event) => {
  if (!event.target.closest("a, aside") && getSelection().isCollapsed) show(here() + (event.clientX < innerWidth / 3 ? -1 : 1));
});
addEventListener("resize", () => fit(slides[here()]));
const ready = () => show((Number(location.hash.slice(1)) || 1) - 1);
addEventListener("hashchange", ready);
window.MathJax = {
  tex: { inlineMath: [["$", "$"]] },
  startup: { pageReady: () => MathJax.startup.defaultPageReady().then(ready) },
};
addEventListener("load", ready);
