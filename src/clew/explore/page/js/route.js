/** The address of a view: `#/why?stream=accidents&row=...`. It holds all that the view shows. */

export function read(hash) {
  const [view, query] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: view || "streams", query: new URLSearchParams(query ?? "") };
}

/**
 * @param {string} view
 * @param {Object<string, any>} entries lists are repeated as they are; other values are left out if empty
 */
export function address(view, entries = {}) {
  const text = parameters(entries).toString();
  return `#/${view}${text && `?${text}`}`;
}

export function parameters(entries) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(entries)) {
    if (Array.isArray(value)) for (const each of value) query.append(name, each);
    else if (value === true) query.append(name, "true");
    else if (value || value === 0) query.append(name, value);
  }
  return query;
}

export function go(view, entries) {
  location.hash = address(view, entries);
}
