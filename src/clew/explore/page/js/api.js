/** Questions to the server. */

import { parameters } from "./route.js";

/** What the server could not answer: what happened, and what to do. */
export class ApiError extends Error {
  constructor(message, { hint = "", code = "", status = 0 } = {}) {
    super(message);
    Object.assign(this, { hint, code, status });
  }
}

/**
 * @param {string} path below `api/`
 * @param {Object<string, any>} [query]
 * @param {{signal?: AbortSignal, method?: string, body?: any}} [how]
 */
export async function ask(path, query = {}, { signal, method = "GET", body } = {}) {
  let response;
  try {
    response = await fetch(apiAddress(path, query), {
      signal,
      method,
      headers: body ? { "Content-Type": "application/json" } : {},
      body: body ? JSON.stringify(body) : undefined,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer.", {
      hint: "Is `clew explore` still running? This page goes on by itself once it is.",
    });
  }
  const text = await response.text();
  if (!response.ok) throw failure(response, text);
  return text ? parse(text) : null;
}

export function apiAddress(path, query = {}) {
  const text = parameters(query).toString();
  return `api/${path}${text && `?${text}`}`;
}

/** Read JSON; whole numbers that JavaScript would round stay exact. */
export function parse(text) {
  return JSON.parse(text, (_, value, context) => {
    if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
    return /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value;
  });
}

function failure(response, text) {
  let said = {};
  try {
    said = JSON.parse(text).error ?? {};
  } catch {
    // Not the server's own words, e.g. those of a proxy in between.
  }
  const message = said.message ?? `The server answered ${response.status}.`;
  return new ApiError(message, { ...said, status: response.status });
}
