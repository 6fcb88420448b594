/**
 * Make elements. Whatever comes from data becomes a text node or an attribute's value, never markup.
 */

/**
 * @param {string} tag
 * @param {Object<string, any>} [settings] attributes; `on` holds listeners, `data` a dataset
 * @param {...(Node|string|number|null|undefined|false|Array<any>)} children
 */
export function h(tag, settings = {}, ...children) {
  return fill(document.createElement(tag), settings, children);
}

/** The same for SVG. */
export function svg(tag, settings = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), settings, children);
}

function fill(element, { on = {}, data = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value);
    }
  }
  Object.assign(element.dataset, data);
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  element.append(...children.flat(Infinity).filter(isThere));
  return element;
}

function isThere(child) {
  return child !== null && child !== undefined && child !== false;
}

/** Text in which `code` stands between backticks, as the messages of clew have it. */
export function prose(text) {
  return text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));
}

/** A choice between values; each option is a value, or a value with its text. */
export function select(options, value, settings = {}) {
  const element = h("select", settings, options.map((each) => {
    const [key, text] = Array.isArray(each) ? each : [each, each];
    return h("option", { value: key }, text);
  }));
  element.value = value;
  return element;
}
