// What is asked of misslink on this machine, and the two ways in which it fails.

const PATIENCE = 20_000; // milliseconds; a label is on disk in a few

// Nobody answers, or it cannot do it now: what was sent may be tried again.
export class Gone extends Error {
  constructor(message, answered) {
    super(message);
    this.answered = answered;
  }
}

// It answers no, and says why: trying again changes nothing by itself.
export class Refused extends Error {}

// The address that misslink printed carries it, and so does a copy of it.
const token = new URLSearchParams(location.search).get("token") ?? "";

const ask = async (path, options = {}) => {
  const headers = { ...options.headers, "X-Misslink-Token": token };
  let reply;
  let content = null;
  try {
    reply = await fetch(path, { ...options, headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    content = await reply.json();
  } catch {
    if (!reply) throw new Gone("misslink does not answer: it was stopped, or this machine slept", false);
  }
  if (reply.ok && content) return content;
  if (reply.status < 500 && content?.error) throw new Refused(content.error);
  throw new Gone(content?.error ?? `misslink answered with an error (${reply.status})`, true);
};

const query = (values) => new URLSearchParams(Object.entries(values)).toString();

const post = (path, content) => ask(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content),
});

export const exportAddress = (format) => `/api/export?${query({ format, token })}`;

export const session = (annotator) => ask(`/api/session?${query({ annotator })}`);

export const item = (annotator, place) => ask(`/api/item?${query({ annotator, at: place })}`);

export const label = (content) => post("/api/label", content);

export const undo = (annotator) => post("/api/undo", { annotator });

export const reveal = (annotator, place) => post("/api/reveal", { annotator, at: place });
