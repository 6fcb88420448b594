/** Where an arrow key leads in a layered drawing. */

/**
 * @param {{nodes: any[], links: {source: string, target: string}[]}} drawing
 * @param {string|null} key where one is; the first key leads to the row asked about
 * @param {"left"|"right"|"up"|"down"} way
 * @param {boolean} narrow whether layers go from top to bottom
 * @returns {string|undefined}
 */
export function neighbour(drawing, key, way, narrow) {
  const here = drawing.nodes.find((node) => node.key === key);
  if (!here) return (drawing.nodes.find((node) => node.asked) ?? drawing.nodes[0])?.key;
  const along = narrow ? { up: -1, down: 1 } : { left: -1, right: 1 };
  const beside = narrow ? { left: -1, right: 1 } : { up: -1, down: 1 };
  return way in along ? linked(drawing, here, along[way]) : next(drawing, here, beside[way]);
}

function linked({ nodes, links }, here, step) {
  const keys = new Set(step < 0
    ? links.filter((each) => each.target === here.key).map((each) => each.source)
    : links.filter((each) => each.source === here.key).map((each) => each.target));
  return nodes.filter((node) => keys.has(node.key)).sort((a, b) => a.place - b.place)[0]?.key;
}

function next({ nodes }, here, step) {
  const layer = nodes.filter((node) => node.layer === here.layer).sort((a, b) => a.place - b.place);
  return layer[layer.indexOf(here) + step]?.key;
}
