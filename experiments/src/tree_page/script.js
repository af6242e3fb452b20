'use strict';
// Walks the tree for values that a reader enters. Numbers are 32-bit floats as in the scheduler: every operation is rounded, so the
// page ends in the same leaf bit for bit.
(() => {
  const tree = JSON.parse(document.getElementById('tree-data').textContent);
  const f = Math.fround;
  const view = new DataView(new ArrayBuffer(4));
  const toBits = (x) => { view.setFloat32(0, x); return view.getUint32(0); };
  const fromBits = (b) => { view.setUint32(0, b); return view.getFloat32(0); };
  const [SQRT2, LOG10_2, LOG10_E] = [f(Math.SQRT2), f(0.3010299956639812), f(0.4342944819032518)];
  const [THIRD, FIFTH, SEVENTH, NINTH] = [f(1 / 3), f(0.2), f(1 / 7), f(1 / 9)];

  // log10(1 + x), as the scheduler's own.
  const log10p1 = (x) => {
    const bits = toBits(f(1 + x));
    let exponent = (bits >>> 23) - 127;
    let mantissa = fromBits((bits & 0x7fffff) | 0x3f800000);
    if (mantissa > SQRT2) { mantissa = f(mantissa * 0.5); exponent += 1; }
    const s = f(f(mantissa - 1) / f(mantissa + 1));
    const q = f(s * s);
    const times = (sum) => f(q * sum);
    const series = f(1 + times(f(THIRD + times(f(FIFTH + times(f(SEVENTH + times(NINTH))))))));
    const ln = f(f(2 * s) * series);
    return f(f(exponent * LOG10_2) + f(ln * LOG10_E));
  };
  // A raw value, clamped to the feature's range and scaled.
  const encode = (feature, raw) => {
    let x = f(raw);
    if (!(x > feature.min)) x = f(feature.min);
    if (!(x < feature.max)) x = f(feature.max);
    return feature.log ? f(log10p1(x) / f(feature.divisor)) : f(x / f(feature.divisor));
  };
  // Places of the nodes on the way, from values by place in the list of features. What is no number goes right.
  const walk = (values) => {
    const path = [0];
    let node = tree.nodes[0];
    while (node.length) {
      const next = values[node[0]] <= node[1] ? node[2] : node[3];
      path.push(next);
      node = tree.nodes[next];
    }
    return path;
  };
  const key = (values) => tree.key.reduce((sum, [feature, weight]) => sum + weight * values[feature], 0);

  const SPANS = { s: 1, sec: 1, min: 60, m: 60, h: 3600, d: 86400, day: 86400, days: 86400 };
  // `90`, `1.5 h`, `2 GPU h`; NaN where it is nothing of the kind.
  const parse = (text, unit) => {
    const found = /^\s*([-+]?[\d.,]+(?:e[-+]?\d+)?)\s*(?:GPU\s*)?([a-z]*)\s*$/i.exec(text);
    if (!found) return NaN;
    const number = Number(found[1].replace(/,/g, ''));
    if (!found[2]) return number;
    return unit.endsWith('s') && Object.hasOwn(SPANS, found[2].toLowerCase())
      ? number * SPANS[found[2].toLowerCase()] : NaN;
  };

  const byId = (id) => document.getElementById(id);
  const kind = byId('kind');
  const inputs = tree.features.map((_, place) => byId(`value-${place}`));
  const answer = byId('answer');
  const say = (words) => { answer.textContent = words; };

  const clear = () => {
    for (const row of document.querySelectorAll('.on, .end')) row.classList.remove('on', 'end');
    byId('example').classList.remove('asked');
  };
  // Scaled values; what never varies in the kind is as it is. None where something entered is no number.
  const values = () => {
    const fixed = new Map(tree.kinds[kind.value].fixed);
    let isWhole = true;
    const found = tree.features.map((feature, place) => {
      const input = inputs[place];
      input.disabled = fixed.has(place);
      input.removeAttribute('aria-invalid');
      if (fixed.has(place)) return fixed.get(place);
      if (input.dataset.scaled !== undefined) return Number(input.dataset.scaled);
      if (input.tagName === 'SELECT') return Number(input.value);
      const raw = parse(input.value, feature.unit);
      if (Number.isNaN(raw)) {
        if (input.value.trim() !== '') input.setAttribute('aria-invalid', 'true');
        isWhole = false;
      }
      return encode(feature, raw);
    });
    return isWhole ? found : null;
  };
  const show = () => {
    clear();
    const found = values();
    if (!found) {
      const wrong = document.querySelectorAll('[aria-invalid]').length;
      return say(wrong ? 'What is marked is no number with a unit of it.' : 'Enter a value for each feature.');
    }
    const path = walk(found);
    for (const place of path) {
      const row = byId(`node-${place}`);
      if (!row) continue;
      row.classList.add('on');
      for (let up = row.parentElement; up; up = up.parentElement) if (up.tagName === 'DETAILS') up.open = true;
    }
    const leaf = tree.nodes[path[path.length - 1]];
    const row = byId(`node-${path[path.length - 1]}`);
    row.classList.add('end');
    byId('example').classList.add('asked');
    answer.textContent = `Tier ${leaf.tier} of ${tree.num_tiers}: leaf ${leaf.leaf}, score ${leaf.score}.`;
    answer.dataset.leaf = leaf.leaf;
    const list = document.createElement('ol');
    for (const place of path.slice(1)) {
      const item = document.createElement('li');
      item.textContent = byId(`node-${place}`).querySelector('.words').textContent;
      list.append(item);
    }
    answer.append(list);
    if (tree.key.length && tree.kinds[kind.value].name !== 'hold') {
      answer.append(`Its key is ${key(found).toPrecision(6)}: the least of its tier comes first.`);
    }
  };
  // Values in the address, `#kind=start&wait_s=2 h`, so that an example can be sent on.
  const readAddress = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    if (![...given.keys()].length) return;
    tree.kinds.forEach((own, place) => { if (own.name === given.get('kind')) kind.value = String(place); });
    tree.features.forEach((feature, place) => {
      if (given.has(feature.name)) inputs[place].value = given.get(feature.name);
    });
    show();
  };
  const writeAddress = () => {
    const given = new URLSearchParams({ kind: tree.kinds[kind.value].name });
    tree.features.forEach((feature, place) => { if (!inputs[place].disabled) given.set(feature.name, inputs[place].value); });
    history.replaceState(null, '', `#${given}`);
  };
  byId('values').addEventListener('input', (event) => { delete event.target.dataset.scaled; show(); });
  byId('values').addEventListener('change', writeAddress);
  byId('values').addEventListener('submit', (event) => { event.preventDefault(); show(); });
  byId('clear').addEventListener('click', () => {
    byId('values').reset();
    for (const input of inputs) delete input.dataset.scaled;
    clear();
    values();
    say('');
    history.replaceState(null, '', '#');
  });
  const open = (isOpen) => { for (const part of document.querySelectorAll('.tree details')) part.open = isOpen; };
  byId('expand').addEventListener('click', () => open(true));
  byId('collapse').addEventListener('click', () => open(false));
  // The two candidates that refute a property, as they were found.
  for (const button of document.querySelectorAll('button[data-witness]')) {
    button.addEventListener('click', () => {
      const given = JSON.parse(button.dataset.witness);
      kind.value = String(Math.max(0, tree.kinds.findIndex((own) => own.fixed.every(([place, value]) =>
        given[tree.features[place].name] === value))));
      tree.features.forEach((feature, place) => {
        const [scaled, raw] = [given[feature.name], given[`${feature.name} raw`]];
        if (scaled === undefined) return;
        inputs[place].value = inputs[place].tagName === 'SELECT' ? String(Math.round(scaled)) : String(raw);
        inputs[place].dataset.scaled = scaled;
      });
      show();
      byId('tree').scrollIntoView({ block: 'start' });
    });
  }
  let wasOpen = [];
  addEventListener('beforeprint', () => {
    wasOpen = [...document.querySelectorAll('.tree details')].map((part) => [part, part.open]);
    open(true);
  });
  addEventListener('afterprint', () => { for (const [part, isOpen] of wasOpen) part.open = isOpen; });
  addEventListener('hashchange', readAddress);
  globalThis.pleach = { encode, walk, key, toBits, tree };
  values();
  readAddress();
})();
