// Map: every document placed by what it says, indexes sized by their links, and a slider that replays the growth.

import { bytes, get } from "./api.js";
import { head, sorry, storePickers } from "./chrome.js";
import { clear, count, download, fixed, h, later, plural } from "./dom.js";
import { go, note, where } from "./router.js";

export async function show(main, params) {
  const { run, seed, arm } = params;
  performance.mark("map-start");
  const about = await get("about", { run });
  const stage = h("div", { class: "stage", role: "img", "aria-label": "Map of the documents and links" });
  const message = h("p", { class: "waiting over", role: "status" }, "Fetching the map…");
  const bar = h("div", { class: "timeline" });
  const legend = h("div", { class: "legend" });
  clear(
    main,
    head(
      "Map",
      "Every dot is a document, near to those that say similar things; large dots are the indexes that were built, sized by their links. Click one to read it.",
      storePickers(about, params, "map"),
    ),
    h("div", { class: "mapbox" }, stage, message, legend),
    bar,
  );
  let graph = null;
  let gone = false;
  const repaint = () => graph?.repaint();
  const system = matchMedia("(prefers-color-scheme: dark)");
  draw().catch((error) => {
    message.hidden = false;
    clear(message, sorry(error));
  });
  addEventListener("themechange", repaint);
  system.addEventListener("change", repaint);
  return () => {
    gone = true;
    removeEventListener("themechange", repaint);
    system.removeEventListener("change", repaint);
    graph?.end();
  };

  async function draw() {
    const [{ MapData }, { MapGraph }, buffer] = await Promise.all([
      import("./mapdata.js"),
      import("./mapgraph.js"),
      fetched(),
    ]);
    if (gone || !buffer) return;
    const data = new MapData(buffer);
    const hovered = h("p", { class: "pointed", role: "status" });
    try {
      graph = new MapGraph(stage, data, {
        onOpen: (id) => go("store", { run, seed, arm, doc: id }),
        onHover: (node) => {
          hovered.textContent = node === null ? "" : `${data.ids[node]}: ${data.texts[node]}`;
        },
      });
    } catch (error) {
      throw new Error(`The map needs WebGL, which this browser does not offer (${error.message}).`);
    }
    message.hidden = true;
    explain(data, hovered);
    timeline(data);
    if (params.focus && data.place.has(params.focus)) {
      const node = data.place.get(params.focus);
      graph.focus(node);
      hovered.textContent = `${data.ids[node]}: ${data.texts[node]}`;
    }
    stage.dataset.nodes = data.nodes;
    performance.measure("map-ready", "map-start");
    stage.dataset.ready = "yes";
  }

  async function fetched() {
    for (;;) {
      const answer = await bytes("map", { run, seed, arm });
      if (gone) return null;
      if (answer.data) return answer.data;
      message.textContent = `Laying out ${plural(answer.waiting.documents, "document")}, once; the next time it is there at once…`;
    }
  }

  function explain(data, hovered) {
    const find = h("input", {
      type: "search",
      placeholder: "Find a document by id or words",
      "aria-label": "Find a document on the map",
      oninput: later(() => {
        const words = find.value.trim().toLowerCase();
        const at = !words
          ? -1
          : data.ids.findIndex(
              (id, node) =>
                data.present(node, graph.at) && (id === words || data.texts[node].toLowerCase().includes(words)),
            );
        graph.focus(at < 0 ? null : at);
        hovered.textContent = at < 0 ? (words ? "Nothing found." : "") : `${data.ids[at]}: ${data.texts[at]}`;
        note({ focus: at < 0 ? null : data.ids[at] });
      }, 150),
    });
    find.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && graph.focused !== null)
        go("store", { run, seed, arm, doc: data.ids[graph.focused] });
    });
    clear(
      legend,
      find,
      h(
        "ul",
        {},
        [
          ["source", "document"],
          ["index", "index, sized by links"],
          ["stub", "stub: an index without links"],
          ["link", "link"],
          ...(data.bad.size ? [["wrong", "wrong or suspect link"]] : []),
        ].map(([kind, name]) => h("li", { class: `key ${kind}` }, name)),
      ),
      graph.every > 1
        ? h(
            "p",
            { class: "small" },
            `1 in ${graph.every} of ${count(data.links)} links is drawn; point at a document to see all of its own.`,
          )
        : null,
      h(
        "div",
        { class: "zoom" },
        [
          ["+", 0.6, "zoom in"],
          ["−", 1.6, "zoom out"],
          ["Whole", 0, "show everything"],
        ].map(([text, factor, title]) =>
          h("button", { type: "button", class: "quiet", title, onclick: () => graph.zoom(factor) }, text),
        ),
        h(
          "button",
          {
            type: "button",
            class: "quiet",
            title: "save the map as SVG",
            onclick: () => download("map.svg", graph.svg(), "image/svg+xml"),
          },
          "SVG",
        ),
      ),
      hovered,
    );
  }

  function timeline(data) {
    const frames = [[0, null, null, "", null], ...data.frames];
    const wanted = Number(where().params.it ?? data.last);
    let place = frames.length - 1;
    frames.forEach((frame, at) => {
      if (frame[0] <= wanted) place = at;
    });
    const said = h("div", { class: "said", "aria-live": "polite" });
    const slider = h("input", {
      type: "range",
      min: 0,
      max: frames.length - 1,
      step: 1,
      value: place,
      "aria-label": "Training iteration",
      oninput: () => move(Number(slider.value)),
    });
    slider.value = place;
    const play = h("button", { type: "button", onclick: () => (playing ? stop() : start()) }, "Play");
    let playing = 0;
    const remember = later((it) => note({ it: it === data.last ? null : it }), 200);
    function move(at) {
      const from = performance.now();
      const [iteration, , , question, f1] = frames[at];
      const now = graph.show(iteration);
      slider.setAttribute("aria-valuetext", `iteration ${iteration}, ${now.links} links`);
      clear(
        said,
        h(
          "strong",
          {},
          frames.length === 1 ? "The store as it is" : iteration ? `Iteration ${iteration}` : "Before training",
        ),
        h("span", { class: "number" }, `${plural(now.indexes, "index", "indexes")}, ${plural(now.links, "link")}`),
        h(
          "span",
          { class: "question" },
          question || "",
          f1 === null || f1 === undefined ? "" : ` (F1 ${fixed(f1, 2)})`,
        ),
      );
      remember(iteration);
      performance.measure("slider-step", { start: from, end: performance.now() });
    }
    function start() {
      if (Number(slider.value) === frames.length - 1) slider.value = 0;
      play.textContent = "Pause";
      playing = setInterval(() => {
        if (gone || Number(slider.value) >= frames.length - 1) return stop();
        slider.value = Number(slider.value) + 1;
        return move(Number(slider.value));
      }, 90);
    }
    function stop() {
      clearInterval(playing);
      playing = 0;
      play.textContent = "Play";
    }
    if (frames.length > 1) clear(bar, play, slider, said);
    else clear(bar, said);
    move(place);
  }
}
