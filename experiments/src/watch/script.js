'use strict';
// Shows a record at one moment: who holds which GPU, who waits, and the figures until then, for two policies in step.
(() => {
  const data = JSON.parse(document.getElementById('watch-data').textContent);
  const byId = (id) => document.getElementById(id);
  const [ID, SUBMIT, GPUS, WORK, TENANT, CLASS, PARTITION] = [0, 1, 2, 3, 4, 5, 6];
  const NUM_COLOURS = 9;
  const [jobs, nodes] = [data.jobs, data.nodes];
  const numGpus = nodes.reduce((sum, node) => sum + node[0], 0);
  const byArrival = jobs.map((_, place) => place).sort((a, b) => jobs[a][SUBMIT] - jobs[b][SUBMIT] || a - b);
  const state = { t: 0, playing: false, job: -1, last: 0 };

  // The last place whose value is at most x; -1 where there is none.
  const lastAtMost = (list, x, of) => {
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (of(list[middle]) <= x) low = middle + 1; else high = middle;
    }
    return low - 1;
  };
  const span = (s) => {
    const a = Math.abs(s);
    if (a < 100) return `${a < 10 ? Math.round(s * 10) / 10 : Math.round(s)} s`;
    if (a < 5400) return `${(s / 60).toFixed(a < 600 ? 1 : 0)} min`;
    return a < 172800 ? `${(s / 3600).toFixed(1)} h` : `${(s / 86400).toFixed(1)} d`;
  };

  // What is asked of a run at any moment, found once: the segments of each job and of each GPU, and the figures over time.
  const prepare = (run) => {
    const lanes = [];
    nodes.forEach((node) => { for (let gpu = 0; gpu < node[0]; gpu += 1) lanes.push([]); });
    const first = [];
    nodes.reduce((sum, node, place) => { first[place] = sum; return sum + node[0]; }, 0);
    const ofJob = jobs.map(() => []);
    run.segments.forEach((segment) => {
      const [job, from, to, rate, milli, ended, places] = segment;
      let num = 0;
      places.forEach(([node, low, high]) => {
        for (let gpu = 0; gpu < nodes[node][0]; gpu += 1) {
          const bits = gpu < 32 ? low : high || 0;
          if (!((bits >>> (gpu % 32)) & 1)) continue;
          num += 1;
          lanes[first[node] + gpu].push({ job, from, to, rate, milli });
        }
      });
      ofJob[job].push({ from, to, rate, ended, places, gpus: num * milli / 1000 });
    });
    const start = (item) => item.from;
    lanes.forEach((lane) => {
      lane.sort((a, b) => a.from - b.from);
      lane.shared = lane.some((item) => item.milli < 1000);
    });
    ofJob.forEach((list) => list.sort((a, b) => a.from - b.from));
    const FINAL = new Set(['completed', 'failed', 'killed']);
    const left = ofJob.map((list) => {
      const last = list[list.length - 1];
      return last && FINAL.has(last.ended) ? last.to : Infinity;
    });
    const at = (job, t) => {
      const place = lastAtMost(ofJob[job], t, start);
      const segment = place < 0 ? null : ofJob[job][place];
      return segment && t < segment.to ? segment : null;
    };
    return { run, lanes, first, ofJob, left, at, series: series(ofJob, left) };
  };

  // Busy GPUs, jobs that wait and the mean time of those that have left, after each change.
  const series = (ofJob, left) => {
    const changes = [];
    jobs.forEach((job, place) => {
      changes.push([job[SUBMIT], 0, 1, 0, 0]);
      let before = -1;
      ofJob[place].forEach((segment) => {
        const goesOn = before === segment.from;
        changes.push([segment.from, segment.gpus, goesOn ? 0 : -1, 0, 0]);
        const next = ofJob[place].find((other) => other.from === segment.to);
        changes.push([segment.to, -segment.gpus, next || left[place] <= segment.to ? 0 : 1, 0, 0]);
        before = segment.to;
      });
      if (left[place] < Infinity) changes.push([left[place], 0, 0, 1, left[place] - job[SUBMIT]]);
    });
    changes.sort((a, b) => a[0] - b[0]);
    const points = [[0, 0, 0, 0, 0]];
    const sum = [0, 0, 0, 0];
    changes.forEach((change) => {
      for (let kind = 0; kind < 4; kind += 1) sum[kind] += change[kind + 1];
      const mean = sum[2] ? sum[3] / sum[2] : 0;
      const point = [change[0], sum[0], sum[1], mean, sum[2]];
      if (points[points.length - 1][0] === change[0]) points[points.length - 1] = point; else points.push(point);
    });
    return points;
  };
  const figures = (side, t) => side.series[Math.max(0, lastAtMost(side.series, t, (point) => point[0]))];

  const runs = data.runs.map(prepare);
  const sides = [...document.querySelectorAll('.side')].map((element, place) => ({
    element,
    place,
    number: Math.min(place, runs.length - 1),
    cells: element.querySelector('.cells'),
    queue: element.querySelector('.queue'),
    now: element.querySelector('.now'),
    select: element.querySelector('select'),
    hits: [],
  }));
  const ofSide = (side) => runs[side.number];

  let ink = {};
  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    ink = { page: of('--page'), ink: of('--ink'), soft: of('--soft'), rule: of('--rule'), box: of('--box'), series: [] };
    for (let number = 0; number < NUM_COLOURS; number += 1) ink.series.push(of(`--s${number}`));
  };
  const colourBy = byId('colour');
  const groupOf = (job) => ({ job, tenant: jobs[job][TENANT], class: jobs[job][CLASS] })[colourBy.value];
  const colourOf = (job) => ink.series[groupOf(job) % NUM_COLOURS];

  // A canvas in pixels of the screen; its size only where that has changed.
  const fit = (canvas, width, height) => {
    const scale = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
    if (canvas.width !== w || canvas.height !== h) {
      [canvas.width, canvas.height] = [w, h];
      canvas.style.height = `${height}px`;
    }
    const pen = canvas.getContext('2d');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    return pen;
  };

  // Nodes in columns, with cells as large as there is room for.
  const layout = (width) => {
    const most = nodes.reduce((found, node) => Math.max(found, node[0]), 1);
    const [label, gap] = [30, 10];
    let best = null;
    for (let columns = 1; columns <= nodes.length; columns += 1) {
      const cell = Math.min(22, Math.floor((width + gap) / columns - label - gap) / most);
      if (cell < 4 && best) break;
      const rows = Math.ceil(nodes.length / columns);
      const size = Math.max(3, Math.floor(cell));
      best = { columns, rows, size, label, pitch: label + gap + most * size, height: rows * (size + 3) + 2 };
      if (best.height < 420) break;
    }
    return best;
  };

  const drawCells = (side) => {
    const prepared = ofSide(side);
    const width = side.cells.clientWidth;
    const plan = layout(width);
    const pen = fit(side.cells, width, plan.height);
    side.plan = plan;
    pen.font = `${Math.min(10, plan.size)}px system-ui, sans-serif`;
    pen.textBaseline = 'middle';
    pen.textAlign = 'right';
    nodes.forEach((node, place) => {
      const x = Math.floor(place / plan.rows) * plan.pitch + plan.label;
      const y = (place % plan.rows) * (plan.size + 3);
      if (plan.size >= 7 || place % 4 === 0) {
        pen.fillStyle = ink.soft;
        pen.fillText(String(place), x - 5, y + plan.size / 2);
      }
      for (let gpu = 0; gpu < node[0]; gpu += 1) {
        const lane = prepared.lanes[prepared.first[place] + gpu];
        pen.fillStyle = ink.box;
        pen.fillRect(x + gpu * plan.size, y, plan.size - 1, plan.size);
        let top = 0;
        holders(lane).forEach((item) => {
          const part = item.milli / 1000;
          pen.globalAlpha = item.rate === 0 ? 0.4 : 1;
          pen.fillStyle = colourOf(item.job);
          pen.fillRect(x + gpu * plan.size, y + top * plan.size, plan.size - 1, plan.size * part);
          pen.globalAlpha = 1;
          if (item.job === state.job) {
            pen.strokeStyle = ink.ink;
            pen.lineWidth = 2;
            pen.strokeRect(x + gpu * plan.size, y + 1, plan.size - 1, plan.size - 2);
          }
          top += part;
        });
      }
    });
  };
  const holders = (lane) => {
    if (lane.shared) return lane.filter((item) => item.from <= state.t && state.t < item.to);
    const place = lastAtMost(lane, state.t, (item) => item.from);
    return place >= 0 && state.t < lane[place].to ? [lane[place]] : [];
  };

  const waiting = (side) => {
    const prepared = ofSide(side);
    const found = [];
    for (const job of byArrival) {
      if (jobs[job][SUBMIT] > state.t) break;
      if (prepared.left[job] > state.t && !prepared.at(job, state.t)) found.push(job);
    }
    return found;
  };

  const ROW = 13;
  const drawQueue = (side) => {
    const list = waiting(side);
    const width = side.queue.clientWidth;
    const isBelow = side.queue.offsetTop > side.cells.offsetTop + 20;
    const height = isBelow ? 12 * ROW : Math.max(160, side.plan.height);
    const pen = fit(side.queue, width, height);
    const room = Math.floor(height / ROW);
    const shown = list.length > room ? room - 1 : list.length;
    side.hits = list.slice(0, shown);
    pen.font = '10px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    side.hits.forEach((job, row) => {
      const y = row * ROW;
      const long = Math.max(3, Math.log2(jobs[job][GPUS] + 1) / Math.log2(numGpus + 1) * (width - 64));
      pen.fillStyle = colourOf(job);
      pen.fillRect(0, y + 1, long, ROW - 3);
      pen.fillStyle = job === state.job ? ink.ink : ink.soft;
      pen.fillText(`${jobs[job][GPUS]} · ${span(state.t - jobs[job][SUBMIT])}`, long + 4, y + ROW / 2);
      if (job === state.job) {
        pen.strokeStyle = ink.ink;
        pen.lineWidth = 2;
        pen.strokeRect(1, y + 1, long, ROW - 3);
      }
    });
    if (list.length > shown) {
      pen.fillStyle = ink.soft;
      pen.fillText(`and ${list.length - shown} more`, 0, shown * ROW + ROW / 2);
    }
    const [, busy, , mean, num] = figures(ofSide(side), state.t);
    side.now.textContent = `${Math.round(busy * 10) / 10} of ${numGpus} GPUs busy, ${list.length} jobs wait, ${num} have left`
      + (num ? ` after ${span(mean)} on average` : '');
  };

  // The figures of all that are shown, over the whole time.
  const chart = byId('figures');
  const STRIPS = [['GPUs busy', 1], ['jobs that wait', 2], ['mean completion time so far', 3]];
  const STRIP = 62;
  // The lines stay as they are while time passes: they are painted once, and copied.
  const lines = document.createElement('canvas');
  let painted = '';
  const paintLines = (width) => {
    const pen = fit(lines, width, STRIPS.length * STRIP);
    pen.font = '11px system-ui, sans-serif';
    STRIPS.forEach(([name, kind], strip) => {
      const [top, high] = [strip * STRIP + 14, STRIP - 18];
      const most = Math.max(1e-9, kind === 1 ? numGpus : 0,
        ...sides.map((side) => ofSide(side).series.reduce((found, point) => Math.max(found, point[kind]), 0)));
      pen.fillStyle = ink.soft;
      pen.fillText(`${name}, up to ${kind === 3 ? span(most) : Math.round(most)}`, 0, top - 4);
      pen.strokeStyle = ink.rule;
      pen.lineWidth = 1;
      pen.strokeRect(0.5, top + 0.5, width - 1, high);
      sides.forEach((side) => {
        pen.strokeStyle = ink.series[data.runs[side.number].look % NUM_COLOURS];
        pen.lineWidth = 1.5;
        pen.beginPath();
        let column = -1;
        let before = 0;
        ofSide(side).series.forEach((point) => {
          const x = point[0] / data.until_s * width;
          const y = top + high - point[kind] / most * high;
          if (Math.floor(x * 2) === column) { before = y; return; }
          if (column >= 0) pen.lineTo(x, before);
          pen.lineTo(x, y);
          column = Math.floor(x * 2);
          before = y;
        });
        pen.stroke();
      });
    });
  };
  const drawFigures = () => {
    const width = chart.clientWidth;
    const key = [width, window.devicePixelRatio, ...sides.map((side) => side.number), ...ink.series].join();
    if (key !== painted) paintLines(width);
    painted = key;
    const pen = fit(chart, width, STRIPS.length * STRIP);
    pen.drawImage(lines, 0, 0, width, STRIPS.length * STRIP);
    const x = state.t / data.until_s * width;
    pen.strokeStyle = ink.ink;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x, 0);
    pen.lineTo(x, STRIPS.length * STRIP);
    pen.stroke();
  };

  const rank = (list, job, of) => list.filter((other) => of(other) < of(job)).length + 1;
  const many = (num, one, more) => `${num} ${num === 1 ? one : more}`;
  // Nodes in words, with their GPU types.
  const where = (segment) => {
    const list = segment.places.map((place) => place[0]);
    const types = [...new Set(list.map((node) => data.types[nodes[node][1]]))].join(' and ');
    return `${list.length === 1 ? 'node' : 'nodes'} ${list.slice(0, 8).join(', ')}${list.length > 8 ? ` and ${list.length - 8} more` : ''} (${types})`;
  };
  // Who else waited at the moment of a start, the job among them.
  const queueAt = (prepared, job, t) => byArrival.filter((other) => jobs[other][SUBMIT] <= t
    && (other === job || (prepared.left[other] > t && !prepared.at(other, t))));
  const freeNow = (prepared) => {
    const free = nodes.map((node, place) => {
      let num = 0;
      for (let gpu = 0; gpu < node[0]; gpu += 1) num += holders(prepared.lanes[prepared.first[place] + gpu]).length ? 0 : 1;
      return num;
    });
    return [free.reduce((sum, num) => sum + num, 0), Math.max(...free)];
  };
  const chosen = (prepared, job, t) => {
    const list = queueAt(prepared, job, t);
    if (list.length === 1) return 'Nobody else waited then.';
    const facts = [
      ['the first to have come', rank(list, job, (other) => jobs[other][SUBMIT])],
      ['the shortest', rank(list, job, (other) => jobs[other][WORK])],
      ['the smallest by GPUs', rank(list, job, (other) => jobs[other][GPUS])],
      ['the smallest by GPU time', rank(list, job, (other) => jobs[other][GPUS] * jobs[other][WORK])],
    ];
    const best = facts.filter(([, place]) => place === 1).map(([name]) => name);
    const places = `by arrival it was number ${facts[0][1]}, by run time ${facts[1][1]}, by GPUs ${facts[2][1]}`;
    const why = best.length ? `It was ${best.join(' and ')}` : 'It was first in none of these orders';
    return `${list.length} jobs waited then: ${places}. ${why}.`;
  };
  const tell = (side, job) => {
    const prepared = ofSide(side);
    const t = state.t;
    const [submit, gpus] = [jobs[job][SUBMIT], jobs[job][GPUS]];
    if (submit > t) return `It comes in ${span(submit - t)}.`;
    const list = prepared.ofJob[job];
    const starts = list.filter((segment, place) => segment.from <= t && (place === 0 || list[place - 1].to < segment.from));
    const again = starts.length > 1 ? ` It was stopped ${many(starts.length - 1, 'time', 'times')} before.` : '';
    const now = prepared.at(job, t);
    if (prepared.left[job] <= t) {
      const ran = list.reduce((sum, segment) => sum + segment.to - segment.from, 0);
      const took = prepared.left[job] - submit;
      return `It left ${span(t - prepared.left[job])} ago (${list[list.length - 1].ended}), ${span(took)} after it came, of which it waited `
        + `${span(Math.max(0, took - ran))}.${starts.length > 1 ? ` It was stopped ${many(starts.length - 1, 'time', 'times')}.` : ''}`;
    }
    if (now) {
      const began = starts[starts.length - 1].from;
      const pause = now.rate === 0 ? ' It makes no progress now (a start, a restart).' : '';
      return `It runs since ${span(t - began)} on ${where(now)}, ${span(began - submit)} after it came.${pause}${again} `
        + chosen(prepared, job, began);
    }
    const [free, most] = freeNow(prepared);
    const room = free < gpus
      ? `${gpus} GPUs are not free (${free} of ${numGpus} are): it does not fit.`
      : most >= gpus ? `${free} GPUs are free and it would fit on one node: the policy lets it wait, or may not start it.`
        : `${free} GPUs are free, at most ${most} on one node: it would fit in parts, or the policy lets it wait.`;
    const others = queueAt(prepared, job, t).filter((other) => other !== job);
    const before = others.filter((other) => jobs[other][SUBMIT] < submit).length;
    const shorter = others.filter((other) => jobs[other][WORK] < jobs[job][WORK]).length;
    const passed = byArrival.filter((other) => jobs[other][SUBMIT] > submit && jobs[other][SUBMIT] <= t && prepared.at(other, t)).length;
    const since = starts.length ? list[lastAtMost(list, t, (segment) => segment.from)].to : submit;
    return `It waits since ${span(t - since)}. ${room}${again} Of ${many(others.length, 'other job', 'other jobs')} that wait, ${before} came `
      + `before it and ${shorter} are shorter; ${many(passed, 'job', 'jobs')} that came later ${passed === 1 ? 'runs' : 'run'} already.`;
  };
  const words = byId('words');
  const paragraph = (text, strong) => {
    const element = document.createElement('p');
    if (strong) {
      const name = document.createElement('strong');
      name.textContent = `${strong} `;
      element.append(name);
    }
    element.append(text);
    return element;
  };
  const drawWords = () => {
    if (state.job < 0) {
      words.replaceChildren(paragraph('Click a job, on a node or in the queue, and read where it stands under each policy.'));
      return;
    }
    const job = jobs[state.job];
    const head = `${many(job[GPUS], 'GPU', 'GPUs')} for ${span(job[WORK])}, ${data.tenants[job[TENANT]]}, ${data.classes[job[CLASS]]}`
      + `${job[PARTITION] ? `, partition ${job[PARTITION]}` : ''}; came at ${span(job[SUBMIT])}.`;
    const told = sides.map((side) => paragraph(tell(side, state.job), `${ofSide(side).run.policy}:`));
    words.replaceChildren(paragraph(head, `Job ${job[ID]}:`), ...told);
  };

  const slider = byId('time');
  const output = byId('at');
  const STEPS = 100000;
  const draw = () => {
    sides.forEach((side) => { drawCells(side); drawQueue(side); });
    drawFigures();
    slider.value = String(Math.round(state.t / data.until_s * STEPS));
    output.textContent = `${span(state.t)} of ${span(data.until_s)}`;
  };
  let toDraw = false;
  const show = () => {
    if (toDraw) return;
    toDraw = true;
    requestAnimationFrame(() => { toDraw = false; draw(); drawWords(); });
  };
  const goTo = (t) => { state.t = Math.min(data.until_s, Math.max(0, t)); show(); };

  // The whole in a minute, at speed 1.
  const MINUTE_MS = 60000;
  const step = (now) => {
    if (!state.playing) return;
    const passed = Math.min(100, now - state.last);
    state.last = now;
    state.t = Math.min(data.until_s, state.t + passed / MINUTE_MS * data.until_s * Number(byId('speed').value));
    draw();
    drawWords();
    if (state.t >= data.until_s) play(false); else requestAnimationFrame(step);
  };
  const play = (on) => {
    state.playing = on;
    byId('play').textContent = on ? 'Pause' : 'Play';
    if (!on) return;
    if (state.t >= data.until_s) state.t = 0;
    state.last = performance.now();
    requestAnimationFrame(step);
  };

  const paintLegend = () => {
    const names = { job: ['neighbouring jobs'], tenant: data.tenants, class: data.classes }[colourBy.value];
    byId('legend').replaceChildren(...names.slice(0, 24).map((name, place) => {
      const [item, box] = [document.createElement('li'), document.createElement('i')];
      box.style.background = ink.series[place % NUM_COLOURS];
      item.append(...(colourBy.value === 'job' ? [] : [box]), colourBy.value === 'job' ? 'colours tell neighbouring jobs apart' : name);
      return item;
    }));
    sides.forEach((side) => { side.element.querySelector('h2 i').style.background = ink.series[data.runs[side.number].look % NUM_COLOURS]; });
  };
  const anew = () => { readColours(); paintLegend(); show(); };

  const pick = (job) => { state.job = job; show(); };
  sides.forEach((side) => {
    runs.forEach((prepared, number) => side.select.add(new Option(prepared.run.policy, String(number), false, number === side.number)));
    side.select.addEventListener('change', () => { side.number = Number(side.select.value); anew(); });
    side.cells.addEventListener('click', (event) => {
      const { plan } = side;
      const column = Math.floor(event.offsetX / plan.pitch);
      const node = column * plan.rows + Math.floor(event.offsetY / (plan.size + 3));
      const gpu = Math.floor((event.offsetX - column * plan.pitch - plan.label) / plan.size);
      if (!(node in nodes) || gpu < 0 || gpu >= nodes[node][0]) return;
      const prepared = ofSide(side);
      const [found] = holders(prepared.lanes[prepared.first[node] + gpu]);
      pick(found ? found.job : -1);
    });
    side.queue.addEventListener('click', (event) => pick(side.hits[Math.floor(event.offsetY / ROW)] ?? -1));
  });
  chart.addEventListener('click', (event) => goTo(event.offsetX / chart.clientWidth * data.until_s));
  slider.addEventListener('input', () => goTo(Number(slider.value) / STEPS * data.until_s));
  byId('play').addEventListener('click', () => play(!state.playing));
  colourBy.addEventListener('change', anew);
  byId('find').addEventListener('change', () => {
    const found = jobs.findIndex((job) => job[ID] === byId('find').value.trim());
    byId('find').setAttribute('aria-invalid', String(found < 0));
    pick(found);
  });
  document.addEventListener('keydown', (event) => {
    if (event.target.matches('input, select, button')) return;
    if (event.key === ' ') { event.preventDefault(); play(!state.playing); }
    if (event.key === 'ArrowRight') goTo(state.t + data.until_s / 200);
    if (event.key === 'ArrowLeft') goTo(state.t - data.until_s / 200);
  });
  window.addEventListener('resize', show);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', anew);

  // The address may say a moment and a job: `#t=3600&job=17`.
  const address = new URLSearchParams(location.hash.slice(1));
  const asked = jobs.findIndex((job) => job[ID] === address.get('job'));
  if (asked >= 0) state.job = asked;
  state.t = Math.min(data.until_s, Math.max(0, Number(address.get('t') ?? data.until_s / 3) || 0));
  readColours();
  paintLegend();
  draw();
  drawWords();
  // How long a picture takes, for whoever asks: the least of some, for a machine does other things too.
  let least = Infinity;
  for (let number = 0; number < 20; number += 1) {
    const began = performance.now();
    draw();
    least = Math.min(least, performance.now() - began);
  }
  document.body.dataset.frameMs = least.toFixed(2);
})();
