"use strict";
// The page's behaviour: theme and detector are chosen, figures drawn when they come into view,
// classes sorted, searched and looked at. All text goes in as text. Plotly takes a second to load,
// in which nothing answers: it waits until a figure is seen.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const darkWanted = matchMedia("(prefers-color-scheme: dark)");
  const printing = { now: false };
  let model = 0;

  const isDark = () =>
    !printing.now && (root.dataset.theme ? root.dataset.theme === "dark" : darkWanted.matches);

  // ---- figures
  const canvases = [...document.querySelectorAll(".canvas[data-figure]")];
  const drawn = new Set();
  const config = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["lasso2d", "select2d"] };

  function loadPlotly() {
    if (window.Plotly) return;
    const script = document.createElement("script");
    script.textContent = document.getElementById("plotly").textContent;
    document.head.append(script);
    for (const canvas of canvases) near.observe(canvas); // from now on before they are seen
  }
  function figureOf(canvas) {
    const versions = data.figures[canvas.dataset.figure];
    return versions.length > 1 ? versions[model] : versions[0];
  }
  function draw(canvas) {
    const figure = figureOf(canvas);
    const empty = canvas.parentElement.querySelector(".no-figure");
    if (empty) empty.hidden = figure !== null;
    canvas.hidden = figure === null;
    drawn.add(canvas);
    if (figure === null) return Promise.resolve();
    loadPlotly();
    const layout = { ...figure.layout, template: data.themes[isDark() ? "dark" : "light"], autosize: true };
    return Plotly.react(canvas, figure.data, layout, config);
  }
  const redraw = () => Promise.all([...drawn].map(draw));
  const drawAll = () => Promise.all(canvases.map(draw));
  const drawWhen = (margin) =>
    new IntersectionObserver(
      (entries) => {
        for (const entry of entries)
          if (entry.isIntersecting && !drawn.has(entry.target)) draw(entry.target);
      },
      { rootMargin: margin },
    );
  const seen = drawWhen("0px"), near = drawWhen("400px");

  // ---- theme and detector
  const themeChoice = document.getElementById("theme");
  function setTheme(value) {
    if (value === "auto") delete root.dataset.theme;
    else root.dataset.theme = value;
    redraw();
  }
  themeChoice.addEventListener("change", () => setTheme(themeChoice.value));
  darkWanted.addEventListener("change", redraw);

  const modelChoice = document.getElementById("model");
  function setModel(value) {
    model = value;
    for (const part of document.querySelectorAll("[data-model]"))
      part.hidden = Number(part.dataset.model) !== model;
    redraw();
  }
  if (modelChoice) modelChoice.addEventListener("change", () => setModel(Number(modelChoice.value)));

  // Pages are printed light, with every figure and every warning.
  const folded = [...document.querySelectorAll("details:not([open])")];
  function setPrinting(now) {
    printing.now = now;
    for (const part of folded) part.open = now;
  }
  addEventListener("beforeprint", () => { setPrinting(true); drawAll(); });
  addEventListener("afterprint", () => { setPrinting(false); redraw(); });

  // ---- classes
  const classes = data.classes;
  const nameOf = (row) => classes.name[row] || `class ${classes.id[row]}`;
  const POINTS = 101;
  const bytes = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const curves = classes.curves.map((one) => ({ mean: bytes(one.mean), at50: bytes(one.at50) }));
  const { steps: STEPS, none: NONE } = classes; // NONE: no object to find, no curve
  const precision = (list, row) => {
    const part = list.subarray(row * POINTS, (row + 1) * POINTS);
    return part[0] === NONE ? null : Array.from(part, (value) => value / STEPS);
  };
  const SVG = "http://www.w3.org/2000/svg";
  const body = document.querySelector("#class-table tbody");
  const rows = [];

  function sparkline(row) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 88 28");
    svg.setAttribute("class", "spark");
    svg.setAttribute("aria-hidden", "true");
    curves.forEach((curve, place) => {
      const values = precision(curve.mean, row);
      if (values === null) return;
      let path = "";
      for (let at = 0; at < POINTS; at += 4)
        path += `${path ? "L" : "M"}${(at * 0.86 + 1).toFixed(1)} ${(26 - 24 * values[at]).toFixed(1)}`;
      const line = document.createElementNS(SVG, "path");
      line.setAttribute("d", path);
      line.setAttribute("stroke", data.colours[place % data.colours.length]);
      svg.append(line);
    });
    return svg;
  }
  const percent = (value) => (value === null ? "–" : (100 * value).toFixed(1));
  function cell(text, value) {
    const td = document.createElement("td");
    td.textContent = text;
    if (value) td.className = value;
    return td;
  }
  function makeRow(row) {
    const tr = document.createElement("tr");
    const name = document.createElement("td");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = nameOf(row);
    button.addEventListener("click", () => chooseClass(row, true));
    name.append(button);
    tr.append(name);
    for (const column of classes.columns) {
      const value = column.values[row];
      if (column.kind === "percent") tr.append(cell(percent(value)));
      else if (column.kind === "delta") {
        const text = value === null ? "–" : `${value >= 0 ? "+" : "−"}${(100 * Math.abs(value)).toFixed(1)}`;
        tr.append(cell(text, value > 0 ? "gain" : value < 0 ? "loss" : ""));
      } else tr.append(cell(typeof value === "number" ? value.toLocaleString("en-US") : value));
    }
    const curve = document.createElement("td");
    curve.append(sparkline(row));
    tr.append(curve);
    return tr;
  }

  const FREQUENCIES = ["rare", "common", "frequent"];
  const keys = [
    classes.name.map((name) => name.toLowerCase()),
    ...classes.columns.map((column) =>
      column.kind === "frequency" ? column.values.map((value) => FREQUENCIES.indexOf(value)) : column.values),
  ];
  const order = classes.name.map((_, row) => row);
  let sorted = { column: null, falling: false };
  function compare(a, b) {
    const values = keys[sorted.column];
    const first = values[a], second = values[b];
    if (first === null || second === null) return (first === null) - (second === null); // at the end
    const way = typeof first === "string" ? first.localeCompare(second) : first - second;
    return sorted.falling ? -way : way;
  }
  const heads = [...document.querySelectorAll("#class-table th[data-column]")];
  function sortBy(column, falling) {
    sorted = { column, falling };
    order.sort((a, b) => compare(a, b) || a - b);
    for (const head of heads) {
      if (Number(head.dataset.column) === column)
        head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    body.append(...order.map((row) => rows[row]));
    filter();
  }
  for (const head of heads) {
    const column = Number(head.dataset.column);
    head.querySelector("button").addEventListener("click", () => {
      const again = sorted.column === column;
      sortBy(column, again ? !sorted.falling : head.dataset.first === "falling");
    });
  }

  const PRINTED = 60;
  const search = document.getElementById("class-search");
  const groups = [...document.querySelectorAll("input[name='group']")];
  const shown = document.getElementById("classes-shown");
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set(groups.filter((box) => box.checked).map((box) => box.value));
    let count = 0;
    for (const row of order) {
      const group = classes.group[row];
      const fits = words.every((word) => keys[0][row].includes(word)) && (!groups.length || !group || wanted.has(group));
      count += fits;
      rows[row].hidden = !fits;
      rows[row].classList.toggle("printed", fits && count <= PRINTED);
    }
    shown.textContent = `${count.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")} classes`;
  }
  search.addEventListener("input", filter);
  for (const box of groups) box.addEventListener("change", filter);

  const classCanvas = document.querySelector(".canvas[data-figure='class-precision']");
  const chosenName = document.getElementById("chosen-class");
  let chosen = null;
  function chooseClass(row, look) {
    if (chosen !== null) rows[chosen].classList.remove("chosen");
    chosen = row;
    rows[row].classList.add("chosen");
    chosenName.textContent = nameOf(row);
    const figure = data.figures["class-precision"][0];
    figure.data.forEach((trace, place) => {
      const curve = curves[Math.floor(place / 2)];
      const values = precision(place % 2 ? curve.at50 : curve.mean, row);
      trace.y = values === null ? [] : values;
    });
    if (look || drawn.has(classCanvas)) draw(classCanvas);
    if (look) {
      const figure = classCanvas.parentElement, top = document.querySelector(".bar").offsetHeight;
      const box = figure.getBoundingClientRect();
      if (box.top < top || box.bottom > innerHeight) figure.scrollIntoView();
    }
  }

  // ---- pictures: a detection of a list and its mark in the picture are highlighted together
  function pick(side, rank) {
    side.querySelector(".scene").classList.toggle("picking", rank !== null);
    for (const part of side.querySelectorAll("[data-rank]"))
      part.classList.toggle("picked", part.dataset.rank === rank);
  }
  const rankAt = (target) => target.closest("[data-rank]")?.dataset.rank ?? null;
  for (const side of document.querySelectorAll(".side")) {
    const items = [...side.querySelectorAll(".boxes li")];
    // The list is one stop of the tab key; arrows move inside it.
    items.forEach((item, place) => { item.tabIndex = place ? -1 : 0; });
    side.addEventListener("pointerover", (event) => pick(side, rankAt(event.target)));
    side.addEventListener("pointerleave", () => pick(side, null));
    side.addEventListener("focusin", (event) => {
      for (const item of items) item.tabIndex = item === event.target ? 0 : -1;
      pick(side, rankAt(event.target));
    });
    side.addEventListener("focusout", () => pick(side, null));
    side.addEventListener("keydown", (event) => {
      const place = items.indexOf(event.target);
      const next = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: items.length - 1 }[event.key];
      if (place < 0 || next === undefined) return;
      event.preventDefault();
      items[next]?.focus();
    });
  }

  for (let row = 0; row < classes.name.length; row += 1) rows.push(makeRow(row));
  if (rows.length) {
    sortBy(classes.first, true);
    chooseClass(order[0], false);
  }
  if (modelChoice) setModel(0);
  for (const canvas of canvases) seen.observe(canvas);
  window.lvdetReport = { drawAll };
})();
