"use strict";
// Sorting and filtering of tables, and reading plots with the pointer and the arrow keys. Without
// the script everything is shown all the same.
(() => {
  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  // --- tables ---

  const exact = (cell) => cell.dataset.v ?? cell.textContent;

  const numberKey = (text) => {
    if (/^-?\d+$/.test(text)) return BigInt(text);
    const value = Number(text);
    return text === "" || Number.isNaN(value) ? null : value;
  };

  const addressKey = (text) => {
    const dotted = /^(.*?)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
    if (dotted === null && !text.includes(":")) return null;
    let tail = text;
    if (dotted !== null) {
      const [a, b, c, d] = dotted.slice(2).map(Number);
      tail = `${dotted[1] || "::ffff:"}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
    }
    const [left, right] = tail.split("::");
    const parts = (side) => (side ? side.split(":") : []);
    const zeros = 8 - parts(left).length - parts(right).length;
    const all = right === undefined ? parts(left) : [...parts(left), ...Array(zeros).fill("0"), ...parts(right)];
    return all.map((part) => part.padStart(4, "0")).join("");
  };

  const keys = { number: numberKey, address: addressKey, time: (text) => text, text: (text) => text };

  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  const sort = (table, place, isDescending) => {
    const body = table.tBodies[0];
    const key = keys[table.tHead.rows[0].cells[place].dataset.kind];
    const rows = [...body.rows].map((row) => [exact(row.cells[place]) === "NULL" ? null : key(exact(row.cells[place])), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return isDescending ? compare(b, a) : compare(a, b);
    });
    body.append(...rows.map(([, row]) => row));
  };

  for (const table of document.querySelectorAll("table.rows")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, place) => {
      const button = element("button", head.textContent, { type: "button" });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const current = head.getAttribute("aria-sort");
        const isFirstDown = head.dataset.kind === "number" && current === null;
        const isDescending = isFirstDown || current === "ascending";
        for (const each of heads) each.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
        sort(table, place, isDescending);
      });
    });
    const rows = [...table.tBodies[0].rows];
    const frame = table.parentElement;
    if (rows.length > 20) frame.classList.add("tall");
    if (rows.length < 2) continue;
    const input = element("input", "", { type: "search", id: `f${table.id}`, autocomplete: "off" });
    const count = element("span", "", { role: "status" });
    const bar = element("div", "", { class: "filter" });
    bar.append(element("label", "Filter", { for: input.id }), input, count);
    frame.before(bar);
    const texts = rows.map((row) => [...row.cells].map((cell) => cell.textContent).join("\n").toLowerCase());
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
      let shown = 0;
      rows.forEach((row, place) => {
        row.hidden = !words.every((word) => texts[place].includes(word));
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = words.length ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows` : "";
    });
  }

  // --- plots ---

  const nearest = (values, wanted) => {
    let low = 0;
    let high = values.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] < wanted) low = middle + 1;
      else high = middle;
    }
    return low > 0 && wanted - values[low - 1] < values[low] - wanted ? low - 1 : low;
  };

  for (const figure of document.querySelectorAll("figure.plot")) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const byTime = data.times.map(() => []);
    for (const line of data.lines) {
      line.i.forEach((time, place) => byTime[time].push([line.label, line.v[place]]));
    }
    const readout = element("p", "", { class: "readout", "aria-live": "polite" });
    const pointer = element("div", "", { class: "pointer", hidden: "" });
    figure.append(readout, pointer);
    let chosen = null;
    const area = () => {
      const svg = [...figure.querySelectorAll("svg")].find((each) => each.getClientRects().length);
      return svg.querySelector(".root .background").getBoundingClientRect();
    };
    const show = (place) => {
      chosen = place;
      const values = byTime[place].map(([label, value]) => {
        const text = value.toLocaleString("en", { maximumSignificantDigits: 12 });
        return data.lines.length > 1 ? `${label} ${text}` : text;
      });
      readout.textContent = `${data.times[place]}: ${values.join("; ")}`;
      const box = area();
      const frame = figure.getBoundingClientRect();
      pointer.hidden = false;
      pointer.style.left = `${box.left - frame.left + data.at[place] * box.width}px`;
      pointer.style.top = `${box.top - frame.top}px`;
      pointer.style.height = `${box.height}px`;
    };
    figure.addEventListener("pointermove", (event) => {
      const box = area();
      const share = (event.clientX - box.left) / box.width;
      if (share < -0.02 || share > 1.02) return;
      const place = nearest(data.at, share);
      if (place !== chosen) show(place);
    });
    figure.addEventListener("pointerleave", () => { pointer.hidden = true; });
    figure.addEventListener("keydown", (event) => {
      const last = data.times.length - 1;
      const now = chosen ?? -1;
      const target = {
        ArrowLeft: Math.max(0, now - 1), ArrowRight: Math.min(last, now + 1), Home: 0, End: last,
      }[event.key];
      if (target === undefined) return;
      event.preventDefault();
      show(target);
    });
  }
})();
