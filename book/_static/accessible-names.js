// What the theme leaves nameless gets a name, for readers who listen to the page, and its menus open where one is.

// The switch says what it does and how it stands; its three icons, of which one shows, are silent.
function nameThemeSwitches() {
  const mode = { auto: "as the system", light: "light", dark: "dark" }[document.documentElement.dataset.mode];
  for (const button of document.querySelectorAll("button.theme-switch-button")) {
    button.setAttribute("aria-label", `Colour mode: ${mode}`);
  }
}

// The words of a title, formulas that are not drawn yet in letters.
function plain(node) {
  const copy = node.cloneNode(true);
  copy.querySelectorAll(".headerlink").forEach((link) => link.remove());
  const words = copy.textContent.replace(/\\sqrt\{([^{}]*)\}/g, "√$1").replace(/\\[()]|[\\{}]/g, "");
  return words.replace(/\s+/g, " ").trim();
}

// A fold's title; that of code says what a press would do.
function titleOf(summary) {
  const said = summary.parentElement.open ? ".expanded" : ".collapsed";
  return summary.querySelector(said) ?? summary.firstElementChild ?? summary;
}

// What unfolds is called after its title, and where it stands: "Hint, Exercise 1.2", "Solution, Exercise 1.2".
function nameFolds() {
  const places = "main :is(h2, h3), .exercise > .admonition-title";
  const folds = ".admonition-title > .toggle-button, .bd-article summary";
  const said = new Map();
  let place = "";
  for (const element of document.querySelectorAll(`${places}, ${folds}`)) {
    if (element.matches(places)) {
      place = plain(element.querySelector(".caption-number") ?? element);
    }
    if (!element.matches(folds)) continue;
    const title = plain(element.matches("summary") ? titleOf(element) : element.parentElement);
    const name = [title, place].filter(Boolean).join(", ");
    said.set(name, (said.get(name) ?? 0) + 1);
    element.setAttribute("aria-label", said.get(name) > 1 ? `${name} (${said.get(name)})` : name);
  }
}

document.addEventListener("DOMContentLoaded", () => {
  // The arrows that unfold a part of the contents: called after the page beside them.
  for (const summary of document.querySelectorAll("li.has-children > details > summary")) {
    const link = summary.closest("li").querySelector("a");
    summary.setAttribute("aria-label", `Pages of ${link.textContent.trim()}`);
  }

  // The side bar: a landmark of its own.
  const sidebar = document.getElementById("pst-primary-sidebar");
  sidebar?.setAttribute("role", "region");
  sidebar?.setAttribute("aria-label", "Side bar");

  // Buttons whose label does not contain the words that they show.
  for (const element of document.querySelectorAll("button.search-button-field")) {
    element.removeAttribute("aria-label");
  }

  for (const button of document.querySelectorAll("button.theme-switch-button")) {
    button.title = "Colour mode";
    for (const icon of button.querySelectorAll("i")) {
      icon.removeAttribute("title");
      icon.setAttribute("aria-hidden", "true");
    }
  }
  nameThemeSwitches();
  new MutationObserver(nameThemeSwitches).observe(document.documentElement, { attributeFilter: ["data-mode"] });

  // The theme takes the focus away from these when they are pressed; with the keyboard it stays where it was.
  for (const button of document.querySelectorAll(".theme-switch-button, .sidebar-toggle.primary-toggle")) {
    button.addEventListener("click", (press) => {
      if (press.detail === 0) button.focus();
    });
  }

  // The menu opens where the reader is, and the page's contents close behind a choice.
  document.querySelector(".primary-toggle")?.addEventListener("click", () => requestAnimationFrame(() => {
    [...document.querySelectorAll("dialog[open] .current > a")].at(-1)?.scrollIntoView({ block: "center" });
  }));
  document.addEventListener("click", (press) => press.target.closest?.("dialog a[href^='#']")?.closest("dialog").close());

  nameFolds();
  document.addEventListener("toggle", nameFolds, true);

  // Entries of the bibliography have a role that browsers no longer know.
  for (const entry of document.querySelectorAll("[role=doc-biblioentry]")) {
    entry.setAttribute("role", "listitem");
  }
});
