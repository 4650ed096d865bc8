// The drawing of the map: sigma over graphology. It is told an iteration and a document to look at; it tells of clicks.

import "./vendor/graphology.umd.min.js";
import "./vendor/sigma.min.js";

const MOST_DRAWN = 30_000; // links drawn at once; of more, an even sample, and all of a document's when it is pointed at
const MOST_EXTRA = 600;

const hue = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export class MapGraph {
  constructor(container, data, { onOpen, onHover }) {
    this.data = data;
    this.at = data.last;
    this.hovered = null;
    this.focused = null;
    this.extra = [];
    this.every = Math.max(1, Math.ceil(data.links / MOST_DRAWN));
    this.colours();
    const graph = (this.graph = new globalThis.graphology.Graph({
      type: "directed",
      multi: true,
      allowSelfLoops: false,
    }));
    for (let node = 0; node < data.nodes; node++) {
      graph.addNode(node, { x: data.xy[2 * node], y: data.xy[2 * node + 1] });
    }
    for (let link = 0; link < data.links; link += this.every) {
      graph.addDirectedEdgeWithKey(link, data.source[link], data.target[link]);
    }
    for (const link of data.bad)
      if (link % this.every) graph.addDirectedEdgeWithKey(link, data.source[link], data.target[link]);
    // Many indexes are drawn smaller, so that a store of hubs is not one blot.
    this.scale = Math.min(1, Math.max(0.55, Math.sqrt(200 / Math.max(1, data.count(this.at).indexes))));
    this.sigma = new globalThis.Sigma(graph, container, {
      nodeReducer: (node) => this.node(Number(node)),
      edgeReducer: (link) => this.link(Number(link)),
      hideEdgesOnMove: data.links > 5_000,
      labelRenderedSizeThreshold: 4.6 * this.scale,
      labelDensity: 0.12,
      labelGridCellSize: 160,
      labelFont: "system-ui, sans-serif",
      labelSize: 12,
      labelColor: { attribute: "labelColour", color: this.ink },
      minEdgeThickness: 0.3,
      zIndex: true,
      stagePadding: 30,
      minCameraRatio: 0.01,
      maxCameraRatio: 3,
      defaultDrawNodeLabel: (context, node, settings) => this.name(context, node, settings),
      defaultDrawNodeHover: (context, node, settings) => this.hover(context, node, settings),
    });
    this.sigma.on("clickNode", ({ node }) => onOpen(data.ids[Number(node)]));
    this.sigma.on("enterNode", ({ node }) => {
      container.classList.add("pointing");
      this.point(Number(node));
      onHover(Number(node));
    });
    this.sigma.on("leaveNode", () => {
      container.classList.remove("pointing");
      this.point(null);
      onHover(null);
    });
  }

  colours() {
    this.ink = hue("ink");
    this.paper = hue("surface");
    this.line = hue("line");
    this.kind = [hue("map-source"), hue("map-edited"), hue("map-index"), hue("map-stub")];
    this.edgeInk = hue(this.every > 1 || this.data.links > 8_000 ? "map-link-faint" : "map-link");
    this.edge = premultiplied(this.edgeInk);
    this.strong = hue("map-link-strong");
    this.wrong = hue("bad");
    this.dim = hue("map-dim");
  }

  node(node) {
    const { data, at } = this;
    if (!data.present(node, at))
      return { hidden: true, x: data.xy[2 * node], y: data.xy[2 * node + 1], size: 1, label: "" };
    const index = data.kinds[node] >= 2;
    const degree = data.degree[node];
    const near = this.near?.has(node);
    const chosen = node === this.hovered || node === this.focused;
    const dimmed = this.near && !near;
    const shade = dimmed ? this.dim : this.kind[index && !degree ? 3 : data.kinds[node]];
    return {
      x: data.xy[2 * node],
      y: data.xy[2 * node + 1],
      size: index ? this.scale * (2 + Math.min(14, 0.85 * Math.sqrt(degree))) : near ? 3.2 : dimmed ? 1 : 1.6,
      color: shade,
      label: chosen || (index && !dimmed) ? short(data.texts[node]) : "",
      labelColour: this.ink,
      highlighted: node === this.focused,
      zIndex: chosen ? 3 : index ? 2 : near ? 1 : 0,
      forceLabel: chosen,
    };
  }

  link(link) {
    const { data, at } = this;
    if (!data.linkedAt(link, at)) return { hidden: true };
    const bad = data.bad.has(link);
    if (this.near) {
      const mine = data.source[link] === this.centre || data.target[link] === this.centre;
      return { hidden: !mine, color: bad ? this.wrong : this.strong, size: 1.4, zIndex: 1 };
    }
    return { color: bad ? this.wrong : this.edge, size: bad ? 1.8 : this.every > 1 ? 0.6 : 0.9, zIndex: bad ? 1 : 0 };
  }

  /** Show only one document's links, all of them; null shows everything again. */
  point(node) {
    this.hovered = node;
    this.centre = node ?? this.focused;
    for (const link of this.extra) this.graph.dropEdge(link);
    this.extra = [];
    this.near = null;
    if (this.centre !== null) {
      const around = this.data.around(this.centre, this.at);
      this.near = new Set([this.centre]);
      for (const link of around) {
        this.near.add(this.data.source[link]).add(this.data.target[link]);
        if (this.extra.length < MOST_EXTRA && !this.graph.hasEdge(link)) {
          this.graph.addDirectedEdgeWithKey(link, this.data.source[link], this.data.target[link]);
          this.extra.push(link);
        }
      }
    }
    this.sigma.refresh({ skipIndexation: true });
  }

  /** The store as it was after an iteration. */
  show(at) {
    this.at = at;
    const found = this.data.count(at);
    if (this.centre !== null && this.centre !== undefined) this.point(this.hovered);
    else this.sigma.refresh({ skipIndexation: true });
    return found;
  }

  focus(node) {
    this.focused = node;
    this.point(this.hovered);
    if (node !== null) {
      const { x, y } = this.sigma.getNodeDisplayData(String(node));
      this.sigma.getCamera().setState({ x, y, ratio: 0.4 });
    }
  }

  /** A label that stays readable over dots and links. */
  name(context, node, settings) {
    if (!node.label) return;
    context.font = `${settings.labelSize}px ${settings.labelFont}`;
    context.lineWidth = 3;
    context.strokeStyle = this.paper;
    context.fillStyle = this.ink;
    const [x, y] = [node.x + node.size + 3, node.y + settings.labelSize / 3];
    context.strokeText(node.label, x, y);
    context.fillText(node.label, x, y);
  }

  hover(context, node, settings) {
    const text = node.label;
    if (!text) return;
    context.font = `${settings.labelSize}px ${settings.labelFont}`;
    const width = context.measureText(text).width + 14;
    const [x, y] = [node.x + node.size + 4, node.y - 12];
    context.fillStyle = this.paper;
    context.strokeStyle = this.line;
    context.beginPath();
    context.roundRect(x, y, width, 24, 6);
    context.fill();
    context.stroke();
    context.fillStyle = this.ink;
    context.fillText(text, x + 7, y + 16);
  }

  repaint() {
    this.colours();
    this.sigma.setSetting("labelColor", { color: this.ink });
    this.sigma.refresh({ skipIndexation: true });
  }

  zoom(factor) {
    const camera = this.sigma.getCamera();
    if (factor === 0) camera.animatedReset();
    else camera.animate({ ratio: camera.getState().ratio * factor }, { duration: 150 });
  }

  /** What is drawn now as SVG text: links first, documents over them. */
  svg() {
    const { data, at } = this;
    const place = (node) => [
      (500 + 480 * data.xy[2 * node]).toFixed(1),
      (500 - 480 * data.xy[2 * node + 1]).toFixed(1),
    ];
    const lines = [];
    this.graph.forEachEdge((key) => {
      const link = Number(key);
      if (!data.linkedAt(link, at)) return;
      const [[x1, y1], [x2, y2]] = [place(data.source[link]), place(data.target[link])];
      lines.push(
        `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="${data.bad.has(link) ? this.wrong : this.edgeInk}" stroke-width="0.4"/>`,
      );
    });
    for (const layer of [0, 1]) {
      for (let node = 0; node < data.nodes; node++) {
        const drawn = this.node(node);
        if (drawn.hidden || data.kinds[node] >= 2 !== Boolean(layer)) continue;
        const [x, y] = place(node);
        lines.push(`<circle cx="${x}" cy="${y}" r="${(drawn.size * 0.6).toFixed(1)}" fill="${drawn.color}"/>`);
      }
    }
    return `<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 1000"><rect width="1000" height="1000" fill="${this.paper}"/>${lines.join("")}</svg>\n`;
  }

  end() {
    this.sigma.kill();
  }
}

/** The drawing library blends colours that are already multiplied by their opacity. */
function premultiplied(colour) {
  const [red, green, blue, alpha = 1] = colour.match(/[\d.]+/g).map(Number);
  return `rgba(${[red, green, blue].map((one) => Math.round(one * alpha)).join(",")},${alpha})`;
}

const short = (text) => (text.length > 70 ? `${text.slice(0, 69)}…` : text);
