// Shows what the OpenAPI document describes, and sends requests. Texts are set as text, never as HTML.

const LONGEST = 1024 * 1024; // Characters of an answer that are shown.

const made = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};

const resolved = (api, schema) => {
  const name = schema?.$ref?.split("/").pop();
  return name ? api.components.schemas[name] : schema;
};

// A value to begin with: the required fields.
const example = (api, given, depth = 0) => {
  const schema = resolved(api, given) ?? {};
  if (depth > 5) return null;
  if ("default" in schema) return schema.default;
  if (schema.enum) return schema.enum[0];
  if ("const" in schema) return schema.const;
  const choice = schema.oneOf ?? schema.anyOf ?? schema.allOf;
  if (choice) return example(api, choice[0], depth + 1);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object" || schema.properties) {
    const fields = (schema.required ?? []).map((name) => [name, example(api, schema.properties?.[name], depth + 1)]);
    return Object.fromEntries(fields);
  }
  const simple = { array: [], string: "", integer: schema.minimum ?? 0, number: 0, boolean: false };
  return simple[type] ?? {};
};

const parameterFields = (operation) =>
  (operation.parameters ?? []).map((parameter) => {
    const input = made("input", { required: parameter.required });
    const name = `${parameter.name} (${parameter.in}${parameter.required ? ", required" : ""})`;
    const label = made("label", {}, name, made("small", { textContent: parameter.description ?? "" }), input);
    return { parameter, input, label };
  });

const bodyField = (api, operation) => {
  const content = Object.entries(operation.requestBody?.content ?? {});
  if (content.length === 0) return null;
  const [media, { schema }] = content[0];
  const text = made("textarea", { value: JSON.stringify(example(api, schema), null, 2), spellcheck: false });
  return { media, text, label: made("label", {}, `Body (${media})`, text) };
};

const request = (method, path, fields, body) => {
  const headers = {};
  const query = new URLSearchParams();
  let address = path;
  for (const { parameter, input } of fields) {
    if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (input.value === "") continue;
    else if (parameter.in === "query") query.append(parameter.name, input.value);
    else headers[parameter.name] = input.value;
  }
  const token = document.getElementById("token").value.trim();
  if (token) headers.Authorization = `Bearer ${token}`;
  const options = { method: method.toUpperCase(), headers };
  if (body && body.text.value.trim()) {
    headers["Content-Type"] = body.media;
    options.body = body.text.value;
  }
  const end = query.toString();
  return [end ? `${address}?${end}` : address, options];
};

// Shows an answer as it arrives, because streams of events go on.
const show = async (response, output) => {
  const head = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  output.textContent = `${response.status} ${response.statusText}\n${head}\n\n`;
  let text = "";
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader.read()) {
    text += part.value;
    output.append(part.value);
    if (text.length > LONGEST) {
      await reader.cancel();
      output.append("\n… the rest is not shown");
      return;
    }
  }
  if (/json$/.test((response.headers.get("content-type") ?? "").split(";")[0])) {
    output.textContent = `${response.status} ${response.statusText}\n${head}\n\n${JSON.stringify(JSON.parse(text), null, 2)}`;
  }
};

const operationView = (api, path, method, operation) => {
  const fields = parameterFields(operation);
  const body = bodyField(api, operation);
  const output = made("pre", { hidden: true });
  const send = made("button", { textContent: "Send" });
  const stop = made("button", { type: "button", textContent: "Stop", hidden: true });
  const labels = [...fields.map((field) => field.label), ...(body ? [body.label] : [])];
  const form = made("form", {}, ...labels, send, stop);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const abort = new AbortController();
    stop.onclick = () => abort.abort();
    [stop.hidden, send.disabled, output.hidden] = [false, true, false];
    output.textContent = "…";
    try {
      const [address, options] = request(method, path, fields, body);
      await show(await fetch(address, { ...options, signal: abort.signal }), output);
    } catch (error) {
      output.append(`\n${error}`);
    }
    [stop.hidden, send.disabled] = [true, false];
  });
  const title = made("summary", {}, made("b", { textContent: method }), made("code", { textContent: path }));
  title.append(` ${operation.summary ?? ""}`);
  return made("details", {}, title, made("p", { textContent: operation.description ?? "" }), form, output);
};

const main = async () => {
  const api = await (await fetch("/openapi.json")).json();
  document.getElementById("about").textContent = `${api.info.version}. ${api.info.description}`;
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const [tag] = operation.tags;
      if (!groups.has(tag)) groups.set(tag, made("section", {}, made("h2", { textContent: tag })));
      groups.get(tag).append(operationView(api, path, method, operation));
    }
  }
  document.getElementById("operations").replaceChildren(...groups.values());
};

main().catch((error) => {
  document.getElementById("operations").textContent = `The OpenAPI document cannot be shown: ${error}`;
});
