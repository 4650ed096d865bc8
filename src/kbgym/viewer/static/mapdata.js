// The map's block of typed arrays, unpacked, and what can be asked of it: who is there at an iteration, who links whom.

const TYPES = { float32: Float32Array, int32: Int32Array, uint32: Uint32Array };

export class MapData {
  constructor(buffer) {
    const size = new DataView(buffer).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
    Object.assign(this, head);
    let offset = 4 + size;
    for (const [name, type, length] of head.arrays) {
      this[name] = new TYPES[type](buffer, offset, length);
      offset += this[name].byteLength;
    }
    this.nodes = head.ids.length;
    this.links = this.source.length;
    this.bad = new Set(head.suspects);
    this.place = new Map(head.ids.map((id, at) => [id, at]));
    this.degree = new Uint32Array(this.nodes);
    this.last = head.frames.length ? head.frames.at(-1)[0] : 0;
  }

  present(node, at) {
    return this.born[node] <= at && at < this.gone[node];
  }

  linkedAt(link, at) {
    return this.linked[link] <= at && at < this.unlinked[link];
  }

  /** Count every document's links out at an iteration; gives how many documents and links there are. */
  count(at) {
    this.degree.fill(0);
    let [documents, links, indexes] = [0, 0, 0];
    for (let link = 0; link < this.links; link++) {
      if (this.linkedAt(link, at)) {
        this.degree[this.source[link]]++;
        links++;
      }
    }
    for (let node = 0; node < this.nodes; node++) {
      if (this.present(node, at)) {
        documents++;
        if (this.kinds[node] >= 2) indexes++;
      }
    }
    return { documents, links, indexes };
  }

  /** The links of one document at an iteration, in and out. */
  around(node, at) {
    const found = [];
    for (let link = 0; link < this.links; link++) {
      if ((this.source[link] === node || this.target[link] === node) && this.linkedAt(link, at)) found.push(link);
    }
    return found;
  }
}
