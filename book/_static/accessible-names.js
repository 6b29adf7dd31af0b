// Names for what the theme leaves nameless, for readers who listen to the page.

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
  for (const element of document.querySelectorAll("button.search-button-field, details.hide > summary")) {
    element.removeAttribute("aria-label");
  }
  for (const button of document.querySelectorAll("button.theme-switch-button")) {
    button.removeAttribute("aria-label");
    button.title = "Colour mode";
  }

  // Entries of the bibliography have a role that browsers no longer know.
  for (const entry of document.querySelectorAll("[role=doc-biblioentry]")) {
    entry.setAttribute("role", "listitem");
  }

  // Tables and lines of code that scroll sideways: reachable with the keyboard.
  for (const box of document.querySelectorAll(".cell_output .output, div.math, div.highlight > pre")) {
    if (box.scrollWidth > box.clientWidth) {
      box.setAttribute("tabindex", "0");
    }
  }
});
