// Names for what the theme leaves nameless, for readers who listen to the page.

// The switch says what it does and how it stands; its three icons, of which one shows, are silent.
function nameThemeSwitches() {
  const mode = { auto: "as the system", light: "light", dark: "dark" }[document.documentElement.dataset.mode];
  for (const button of document.querySelectorAll("button.theme-switch-button")) {
    button.setAttribute("aria-label", `Colour mode: ${mode}`);
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
  for (const element of document.querySelectorAll("button.search-button-field, details.hide > summary")) {
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

  // What a button unfolds is said in the line that it stands in.
  for (const button of document.querySelectorAll(".admonition-title > .toggle-button")) {
    button.setAttribute("aria-label", button.parentElement.textContent.replace(/\s+/g, " ").trim());
  }

  // Entries of the bibliography have a role that browsers no longer know.
  for (const entry of document.querySelectorAll("[role=doc-biblioentry]")) {
    entry.setAttribute("role", "listitem");
  }
});
