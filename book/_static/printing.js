// A printout has light colours, equations that fit the paper, and solutions only where the address ends with
// ?solutions (or the page carries the class print-solutions).

const PAPER = 640; // pixels of text on a sheet of A4 with its margins
const LETTERS = 14; // pixels of its letters, 10.5pt

function fitEquations() {
  for (const formula of document.querySelectorAll(".bd-article mjx-container[display=true]")) {
    // A numbered equation is as wide as the column; its own width stands in its style.
    const own = formula.getAttribute("width") === "full" && parseFloat(getComputedStyle(formula).minWidth);
    const onScreen = own || formula.firstElementChild?.getBoundingClientRect().width || 0;
    const width = (onScreen * LETTERS) / parseFloat(getComputedStyle(formula.parentElement).fontSize);
    if (width <= PAPER) continue;
    formula.dataset.size ??= formula.style.fontSize; // MathJax's, in per cent
    formula.style.fontSize = `${Math.floor((parseFloat(formula.dataset.size) * PAPER) / width)}%`;
  }
}

function unfold() {
  for (const button of document.querySelectorAll(".toggle-hidden > .admonition-title > .toggle-button")) {
    button.click();
    button.dataset.unfolded = "print";
  }
  for (const details of document.querySelectorAll(".bd-article details:not([open])")) {
    details.open = true;
    details.dataset.unfolded = "print";
  }
}

function fold() {
  for (const element of document.querySelectorAll("[data-unfolded]")) {
    delete element.dataset.unfolded;
    if (element.matches("details")) element.open = false;
    else element.click();
  }
  for (const formula of document.querySelectorAll("[data-size]")) formula.style.fontSize = formula.dataset.size;
}

const root = document.documentElement;
let themeOnScreen = root.dataset.theme;

addEventListener("beforeprint", () => {
  themeOnScreen = root.dataset.theme;
  root.dataset.theme = "light";
  for (const picture of document.querySelectorAll("img[loading=lazy]")) picture.loading = "eager";
  fitEquations();
  if (root.classList.contains("print-solutions") || new URLSearchParams(location.search).has("solutions")) unfold();
});

addEventListener("afterprint", () => {
  root.dataset.theme = themeOnScreen;
  fold();
});
