(() => {
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const CLASS_TOKEN = -1;

  function start(explorer) {
    explorer.started = true;
    const [layers, heads, rows, columns, special, levels, darkest] = JSON.parse(explorer.dataset.shape);
    const patches = rows * columns;
    const bytes = Uint8Array.from(atob(explorer.dataset.maps), (letter) => letter.charCodeAt(0));
    const find = (name) => explorer.querySelector(name);
    const photo = find(".photo"), cells = find(".cells").children, looks = find(".looks");
    const layer = find(".layer"), head = find(".head"), whole = find("button"), text = find("p");
    let chosen = special ? CLASS_TOKEN : Math.floor(rows / 2) * columns + Math.floor(columns / 2);

    let held = false; // the pointer shows no other patch until this one is clicked again, or the class token shown

    const place = (patch) => `row ${Math.floor(patch / columns) + 1}, column ${(patch % columns) + 1}`;

    // Show where a token looks, the chosen one or one that the pointer passes over; say it aloud if asked for.
    function draw(token = chosen, aloud = true) {
      const map = (layer.value - 1) * heads + (head.value - 1);
      const first = (map * (patches + special) + token + special) * patches;
      let brightest = 0;
      for (let patch = 0, most = -1; patch < patches; patch++) {
        const value = (bytes[(first + patch) >> 1] >> ((first + patch) % 2 ? 4 : 0)) & 15;
        cells[patch].style.opacity = (darkest * (1 - value / levels)).toFixed(2);
        if (value > most) [most, brightest] = [value, patch];
      }
      looks.hidden = token === CLASS_TOKEN;
      looks.style.left = `${(100 * (token % columns)) / columns}%`;
      looks.style.top = `${(100 * Math.floor(token / columns)) / rows}%`;
      whole.setAttribute("aria-pressed", chosen === CLASS_TOKEN);
      text.setAttribute("aria-live", aloud ? "polite" : "off");
      const who = token === CLASS_TOKEN ? "the class token" : `the patch in ${place(token)}`;
      text.textContent = `Layer ${layer.value}, head ${head.value}: where ${who} looks. ` +
        `Of all patches it looks most at ${place(brightest)}.`;
    }

    function choose(token, hold = token !== CLASS_TOKEN) {
      [chosen, held] = [token, hold];
      draw();
    }

    function patchAt(event) {
      const box = photo.getBoundingClientRect();
      const at = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
      const row = at((event.clientY - box.top) / box.height, rows);
      return row * columns + at((event.clientX - box.left) / box.width, columns);
    }

    function step(event) {
      const move = STEPS[event.key];
      if (!move || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      if (chosen === CLASS_TOKEN) return choose(0);
      const row = Math.min(rows - 1, Math.max(0, Math.floor(chosen / columns) + move[0]));
      choose(row * columns + Math.min(columns - 1, Math.max(0, (chosen % columns) + move[1])));
    }

    photo.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse" && !held) draw(patchAt(event), false);
    });
    photo.addEventListener("pointerleave", () => draw(chosen, false));
    photo.addEventListener("click", (event) => {
      const patch = patchAt(event);
      choose(patch, !(held && patch === chosen));
    });
    photo.addEventListener("keydown", step);
    for (const control of [layer, head]) control.addEventListener("input", () => draw());
    whole.addEventListener("click", () => choose(CLASS_TOKEN));
    photo.tabIndex = 0;
    photo.setAttribute("role", "application");
    photo.setAttribute("aria-label", `A photo of ${rows} by ${columns} patches. Arrow keys choose the patch that looks.`);
    find(".controls").hidden = false;
    whole.hidden = !special;
    draw(chosen, false);
  }

  for (const explorer of document.querySelectorAll(".attention-explorer")) {
    if (!explorer.started) start(explorer);
  }
})();
