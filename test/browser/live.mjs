// Compares the page with a running reducer: do the pixels, tooltips, search and filters agree with the API?
//
//   node live.mjs --url http://127.0.0.1:4040 --executable truth --functions spin_a,spin_b,spin_c
//                 [--from -5m] [--to now] [--upload FILE [--screenshot-lines lines.png]] [--screenshot out.png]
//                 [--screenshot-all all.png] [--type alloc_space:bytes [--screenshot-type type.png]]
//                 [--events [--screenshot-events events.png]]
//
// --functions: functions that must be on the stacks of that executable. The script uses the widest frame of each name.
// --upload: a file with names that are new to the reducer. Its base name must be the name of a sampled executable. It
// must have lines of the first function.
// --type: a type that the range must have samples of, in addition to CPU time. The page must offer the type and show it
// in its unit.
// --events: also compare the marks, programs and endings of process events. No events of the range may still arrive.
// --screenshot: the executable's graph; --screenshot-all: everything that ran in the range; --screenshot-lines: the
// lines of the first function.
// Exit code 0: all agrees; 1: a mismatch, reported on standard error; 2: usage.
import {basename} from 'node:path';
import {parseArgs} from 'node:util';
import {click, hover, layOut, openBrowser, settled} from './browser.mjs';

class Mismatch extends Error {}

function expect(actual, wanted, label) {
  if (actual !== wanted)
    throw new Mismatch(`${label}: the page says ${JSON.stringify(actual)}, the API ${JSON.stringify(wanted)}`);
}

// The page rounds to `digits` digits. So its number may differ by half of the last digit. Close to the bounds 0 and 100
// the page shows a limit instead: "<0.01%", ">99.99%".
function expectPercent(text, part, whole, label, digits = 2) {
  const wanted = (100 * part) / whole;
  const [, bound, shown] = /^([<>]?)([\d.]+)%/.exec(text ?? '') ?? [];
  const agrees = {
    '': Math.abs(shown - wanted) <= 0.51 * 10 ** -digits,
    '<': wanted > 0 && wanted <= shown,
    '>': wanted < 100 && wanted >= shown,
  };
  if (!agrees[bound]) throw new Mismatch(`${label}: the page says ${text}, the API ${wanted.toFixed(4)}%`);
}

const count = (value) => value.toString().replace(/\B(?=(\d{3})+$)/g, ',');

async function ask(url, path, parameters) {
  const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(parameters)}`);
  if (!response.ok) throw new Mismatch(`GET ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

function widest(frames, name) {
  const found = frames.filter((frame) => frame.name === name).sort((a, b) => b.totalNs - a.totalNs)[0];
  if (!found) throw new Mismatch(`the API's flame graph has no frame ${name}`);
  return found;
}

// Returns the time of the topmost frames of that name, and the number of frames. A search for it must show both.
function matched(frames, name) {
  const inside = [];
  let ns = 0;
  let hits = 0;
  for (const frame of frames) {
    const above = frame.parent >= 0 && inside[frame.parent];
    const match = frame.parent >= 0 && frame.name === name;
    inside[frame.index] = above || match;
    if (match) ++hits;
    if (match && !above) ns += frame.totalNs;
  }
  return {ns, hits};
}

// Waits until no more samples of the range arrive. While collectors are connected, samples may still be in flight, for
// as long as the interval of batches (5 s).
async function waitUntilComplete(url, range) {
  const pauseMs = 6000;
  const triesMax = 10;
  const connected = (await ask(url, 'status', {})).nodes.some((node) => node.connected);
  let before = -1;
  for (let tries = 0; connected && tries < triesMax; ++tries) {
    const {count: now} = (await ask(url, 'flamegraph', range)).total;
    if (now === before) return;
    before = now;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  if (connected)
    throw new Mismatch(`samples of a range that is over kept arriving for ${(triesMax * pauseMs) / 1000} s`);
}

async function checkFunction(page, frames, name) {
  const root = frames[0];
  const frame = widest(frames, name);
  const compare = async (zoomed, label) => {
    const tooltip = await hover(page, frame, zoomed);
    expect(tooltip.name, name, `${label}: name`);
    expectPercent(tooltip.totalPercent, frame.totalNs, root.totalNs, `${label}: total`);
    expectPercent(tooltip.selfPercent, frame.selfNs, root.totalNs, `${label}: self`);
    expect(tooltip.totalSamples, count(frame.totalCount), `${label}: samples`);
    expect(tooltip.selfSamples, count(frame.selfCount), `${label}: own samples`);
    if (zoomed !== root)
      expectPercent(tooltip.totalZoomed, frame.totalNs, zoomed.totalNs, `${label}: share of the zoomed frame`);
    return tooltip;
  };
  const tooltip = await compare(root, `pixels of ${name}`);
  console.log(`${name}: ${tooltip.totalPercent} of ${count(root.totalCount)} samples, as the API says`);

  await click(page, frame, root);
  expect(await page.getByTestId('flame').getAttribute('data-zoom'), String(frame.index), `a click on ${name} zooms`);
  await compare(frame, `zoomed ${name}`);
  await page.getByTestId('reset-zoom').click();
  await settled(page);

  await page.getByTestId('search').fill(`"${name}"`);
  await settled(page);
  const {ns, hits} = matched(frames, name);
  const result = await page.getByTestId('search-result').textContent();
  const [, shownHits, shownPercent] = /^([\d,]+) frames?, (.*)$/.exec(result) ?? [];
  expect(shownHits, count(hits), `search for ${name}`);
  expectPercent(shownPercent, ns, root.totalNs, `search for ${name}`);
  await page.getByTestId('search').fill('');
  await settled(page);
}

// Finds a function by a search, and compares all its lines and which of them have text. Returns the share of the
// function's time that has a known line.
async function checkLines(page, url, parameters, name) {
  await page.getByTestId('search').fill(`"${name}"`);
  await settled(page);
  await page.getByTestId('open-lines-of-matches').click();
  await page.getByTestId('match-lines').first().click();
  await settled(page);
  const executable = new URLSearchParams(new URL(page.url()).hash.slice(1)).get('lines_in') ?? '';
  const {lines} = await ask(url, 'lines', {...parameters, function: name, executable});
  const sum = (of) => of.reduce((total, line) => total + line.total_ns, 0);
  const rows = await page.getByTestId('line').all();
  expect(rows.length, Math.min(lines.length, 500), `lines of ${name}: rows`);
  for (const row of rows) {
    const title = await row.getByTestId('line-open').getAttribute('title');
    const line = lines.find(({file, line: number}) => (title ? `${file}:${number}` === title : file === ''));
    if (!line) throw new Mismatch(`lines of ${name}: the API has no ${title}`);
    const [self, total] = await row.locator('.amount-percent').allTextContents();
    for (const [shown, part] of [[self, line.self_ns], [total, line.total_ns]]) {
      expectPercent(shown, part, sum(lines), `lines of ${name}: ${title}`, 1);
    }
  }
  const known = sum(lines.filter(({line}) => line > 0)) / sum(lines);
  const withText = lines.filter(({text}) => text !== null).length;
  expect(await page.getByTestId('source-hot').count(), withText, `lines of ${name}: with text`);
  const share = `${(100 * known).toFixed(1)}% of its time in known ones`;
  console.log(`lines of ${name}: ${rows.length}, ${withText} with text, ${share}, as the API says`);
  return known;
}

// The page must offer exactly the types that the range has. If there is only one type, the page offers no choice.
async function checkTypes(page, url, parameters) {
  const {types} = await ask(url, 'types', parameters);
  const units = [];
  if (types.length > 1) {
    await page.getByTestId('open-type').click();
    units.push(...(await page.getByTestId('type-option').locator('.option-detail').allTextContents()));
    await page.keyboard.press('Escape');
  }
  expect(units.join(', '), types.length > 1 ? types.map(({unit}) => unit).join(', ') : '', 'units of the types offered');
  expect(await page.getByTestId('type').count(), types.length > 1 ? 1 : 0, 'selectors of types');
  console.log(`types: ${types.map(({name, unit}) => `${name} (${unit})`).join(', ')}, as the API says`);
}

// Formats bytes as the page does.
function inBytes(value) {
  const power = Math.min(4, Math.floor(Math.log2(Math.max(1, value)) / 10));
  if (power === 0) return `${count(value)} B`;
  const scaled = value / 1024 ** power;
  return `${scaled.toFixed(scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0)} ${'KMGT'[power - 1]}iB`;
}

// Chooses another type in the selector. The page must request that type and show each number in its unit.
async function checkType(page, url, parameters, type, screenshot) {
  const [name, unit] = type.split(':');
  await page.getByTestId('open-type').click();
  await page.getByTestId('type-option').filter({hasText: name}).click();
  await settled(page);
  const answer = await ask(url, 'flamegraph', {...parameters, type});
  expect(answer.unit, unit, `unit of ${name}`);
  const root = layOut(answer)[0];
  const tooltip = await hover(page, root, root);
  expect(await page.getByTestId('tooltip-measure').textContent(), name, 'what the tooltip measures');
  expect(tooltip.totalTime, inBytes(root.totalNs), `all ${name}`);
  expect(tooltip.totalSamples, count(root.totalCount), `samples of ${name}`);
  expect(await page.getByTestId('timeline-title').textContent(), `${name} in ${unit} per second`, 'title of the timeline');
  const totals = await page.getByTestId('totals').textContent();
  expect(totals.split(', ')[1], `${inBytes(root.totalNs)} of ${name}`, `totals of ${name}`);
  if (screenshot) await page.screenshot({path: screenshot});
  console.log(`${name}: ${totals}, as the API says`);
  await page.getByLabel('Clear the type').click();
  await settled(page);
  expect(await page.getByTestId('timeline-title').textContent(), 'CPU use in cores', 'title of the timeline, without a type');
}

async function closeLines(page) {
  await page.getByTestId('lines-close').click();
  await page.getByTestId('search').fill('');
  await settled(page);
}

// Compares the share, each ending and each executable that cut stacks short.
async function checkHealth(page, answer, label) {
  const {samples, endings, executables} = answer;
  const walked = samples - (endings.kernel_only ?? 0);
  const text = await page.getByTestId('health-share').textContent();
  if (walked > 0) {
    if (!text.endsWith('% of stacks complete')) throw new Mismatch(`stack health of ${label}: the page says ${text}`);
    expectPercent(text, endings.complete ?? 0, walked, `stack health of ${label}`, 1);
  }
  await page.getByTestId('health-details').click();
  for (const [ending, number] of Object.entries(endings)) {
    const row = page.getByTestId(`health-${ending}`);
    const shown = await row.locator('.ending-count').textContent();
    expect(shown, `${count(number)} ${number === 1 ? 'sample' : 'samples'}`, `stack health of ${label}: ${ending}`);
    const share = await row.locator('.ending-share').textContent();
    expectPercent(share, number, samples, `stack health of ${label}: ${ending}`);
  }
  const counts = await page.getByTestId('health-executable').locator('.ending-count').allTextContents();
  expect(
    counts.map((shown) => shown.split(' ')[0]).join(' '),
    executables.map((executable) => count(executable.samples)).join(' '),
    `stack health of ${label}: samples by executable`,
  );
  await page.getByTestId('health-details').click();
  await settled(page);
  console.log(`stack health of ${label}: ${text}, ${executables.length} executables to blame, as the API says`);
}

// Compares every executable: its samples, its functions, its addresses without a name.
async function checkExecutables(page, answer) {
  await page.getByTestId('executables-details').click();
  await settled(page);
  const rows = await page.getByTestId('executable').all();
  expect(rows.length, answer.executables.length, 'executables: rows');
  for (const [i, row] of rows.entries()) {
    const {name, total_count, addresses, unnamed_addresses, symbols} = answer.executables[i];
    const label = `executables: row ${i + 1}, ${name}`;
    const second = (cell) => row.locator('td').nth(cell).locator('.second').textContent();
    if (total_count > 0) {
      expect(await second(0), `${count(total_count)} ${total_count === 1 ? 'sample' : 'samples'}`, `${label}: samples`);
      expect(await second(4), `${count(unnamed_addresses)} of ${count(addresses)}`, `${label}: no name`);
    }
    expect(
      await row.locator('td').nth(3).textContent(),
      symbols ? count(symbols.functions) : '',
      `${label}: functions`,
    );
  }
  const line = await page.getByTestId('executables-line').textContent();
  await page.getByTestId('executables-details').click();
  await settled(page);
  console.log(`executables: ${line}, ${rows.length} rows as the API says`);
}

const markKinds = {crash: 'crash', crashes: 'crash', 'OOM kill': 'oom', 'OOM kills': 'oom', restart: 'restart', restarts: 'restart'};

// Adds up the numbers in the labels of all marks, such as "2 crashes, 1 restart, 12:00:03".
function countedMarks(labels) {
  const counts = {crash: 0, oom: 0, restart: 0};
  for (const label of labels) {
    for (const [, number, words] of label.matchAll(/([\d,]+) (crash(?:es)?|OOM kills?|restarts?)(?=,)/g))
      counts[markKinds[words]] += Number(number.replaceAll(',', ''));
  }
  return counts;
}

// Compares the numbers of marks, each program of the table, and the endings.
async function checkEvents(page, url, parameters, screenshot) {
  const {marks} = await ask(url, 'events/marks', {...parameters, limit: '1000'});
  const wanted = {crash: 0, oom: 0, restart: 0};
  for (const {kind, count: processes} of marks) if (kind in wanted) wanted[kind] += processes;
  const labels = await page.getByTestId('event-mark').evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')));
  expect(JSON.stringify(countedMarks(labels)), JSON.stringify(wanted), 'marks of the timeline');

  const {programs, total} = await ask(url, 'events/programs', {...parameters, sort: 'processes', limit: '200'});
  const line = await page.getByTestId('processes-line').textContent();
  expect(/^[\d,]+/.exec(line)?.[0] ?? '0', count(total.processes), 'short-lived processes');
  expect(/([\d,]+) failed/.exec(line)?.[1] ?? '0', count(total.failed), 'failed processes');
  await page.getByTestId('processes-details').click();
  await page.getByTestId('processes-body').waitFor();
  await settled(page);
  const rows = await page.getByTestId('program').all();
  expect(rows.length, programs.length, 'programs: rows');
  for (const [i, row] of rows.entries()) {
    const {processes, failed, share} = programs[i];
    const label = `programs: row ${i + 1}, ${programs[i].executable || programs[i].name}`;
    const cell = (number) => row.locator('td').nth(number).locator('.amount-percent');
    expect(await cell(1).textContent(), count(processes), `${label}: processes`);
    if (failed > 0) expect(await cell(2).textContent(), count(failed), `${label}: failed`);
    expectPercent(await cell(3).textContent(), share, 1, `${label}: CPU time`, 1);
  }

  const {events} = await ask(url, 'events', {...parameters, kind: 'crash,oom,failed', limit: '50'});
  const times = await page.getByTestId('ending').locator('time').evaluateAll((all) => all.map((one) => one.dateTime));
  expect(times.join(' '), events.map(({at}) => new Date(at).toISOString()).join(' '), 'endings');
  if (screenshot) await page.screenshot({path: screenshot, fullPage: true});
  await page.getByTestId('processes-details').click();
  await settled(page);
  const {crash, oom, restart} = wanted;
  console.log(`process events: ${crash} crashes, ${oom} OOM kills, ${restart} restarts; ${line}; as the API says`);
}

// This check runs last, because frames may have other names after it.
async function checkUpload(page, url, parameters, path) {
  await page.getByTestId('executables-details').click();
  await page.getByTestId('upload-files').setInputFiles(path);
  await page.getByTestId('upload-progress').filter({hasText: 'All files are finished'}).waitFor();
  await settled(page);
  const outcome = await page.getByTestId('upload-outcome').textContent();
  const answer = await ask(url, 'symbols', parameters);
  const {symbols} = answer.executables.find(({name}) => name === basename(path)) ?? {};
  if (symbols?.origin !== 'upload')
    throw new Mismatch(`upload of ${path}: its names are still from ${symbols?.origin}; the page says ${outcome}`);
  if (!outcome.startsWith('stored: ') || !outcome.includes(`, ${count(symbols.functions)} functions`))
    throw new Mismatch(`upload of ${path}: the page says ${outcome}, the API ${symbols.functions} functions`);
  console.log(`upload of ${path}: ${outcome}`);
  await page.getByTestId('executables-details').click();
  await checkExecutables(page, answer);
}

// Compares the lines of a function. At least 90% of its time must have a known line.
async function checkSource(page, url, parameters, name, screenshot) {
  const known = await checkLines(page, url, parameters, name);
  if (known < 0.9) throw new Mismatch(`lines of ${name}: only ${(100 * known).toFixed(1)}% of its time has a line`);
  if (screenshot) await page.screenshot({path: screenshot});
  await closeLines(page);
}

async function main() {
  const {values} = parseArgs({
    options: {
      url: {type: 'string'},
      executable: {type: 'string'},
      functions: {type: 'string'},
      from: {type: 'string', default: '-5m'},
      to: {type: 'string', default: 'now'},
      upload: {type: 'string'},
      type: {type: 'string'},
      events: {type: 'boolean'},
      screenshot: {type: 'string'},
      'screenshot-all': {type: 'string'},
      'screenshot-lines': {type: 'string'},
      'screenshot-type': {type: 'string'},
      'screenshot-events': {type: 'string'},
    },
  });
  if (!values.url || !values.executable || !values.functions) {
    console.error(
      'usage: node live.mjs --url URL --executable NAME --functions a,b,c [--from -5m] [--to now] ' +
        '[--upload FILE [--screenshot-lines FILE]] [--type NAME:UNIT [--screenshot-type FILE]] ' +
        '[--events [--screenshot-events FILE]] ' +
        '[--screenshot FILE] [--screenshot-all FILE]',
    );
    process.exit(2);
  }
  const url = values.url.replace(/\/$/, '');
  const query = `{process_executable_name=${JSON.stringify(values.executable)}}`;
  // The first answer turns a relative range into an absolute range, which does not change from then on.
  const {from, to} = await ask(url, 'flamegraph', {from: values.from, to: values.to, query});
  const fixed = {from: String(from), to: String(to)};
  await waitUntilComplete(url, fixed);
  const frames = layOut(await ask(url, 'flamegraph', {...fixed, query}));
  const all = layOut(await ask(url, 'flamegraph', fixed));
  const health = await ask(url, 'stack-health', {...fixed, query});
  const healthOfAll = await ask(url, 'stack-health', fixed);
  const symbolsOfAll = await ask(url, 'symbols', {...fixed, limit: '300'});
  if (frames[0].totalNs === 0) throw new Mismatch(`no samples of ${values.executable} from ${from} to ${to}`);

  const {page, complaints, close} = await openBrowser({width: 1440, height: 900});
  try {
    // First without a filter, then with the filter that a user sets.
    await page.goto(`${url}/#${new URLSearchParams(fixed)}`);
    await settled(page);
    const rootTooltip = await hover(page, all[0], all[0]);
    expect(rootTooltip.totalSamples, count(all[0].totalCount), 'samples of everything');
    await checkHealth(page, healthOfAll, 'everything');
    await checkExecutables(page, symbolsOfAll);
    await checkTypes(page, url, fixed);
    if (values.events) await checkEvents(page, url, fixed, values['screenshot-events']);
    if (values.type) await checkType(page, url, fixed, values.type, values['screenshot-type']);
    await page.mouse.move(2, 2);
    if (values['screenshot-all']) await page.screenshot({path: values['screenshot-all']});

    await page.getByTestId('open-process-filter').click();
    await page.keyboard.type(values.executable);
    await page
      .getByRole('dialog')
      .locator('button')
      .filter({has: page.getByText(values.executable, {exact: true})})
      .first()
      .click();
    await settled(page);
    expect(await page.getByTestId('selector').inputValue(), query, 'selector made by the process filter');
    expect(
      (await hover(page, frames[0], frames[0])).totalSamples,
      count(frames[0].totalCount),
      `samples of ${values.executable}`,
    );

    await checkHealth(page, health, values.executable);
    const functions = values.functions.split(',');
    for (const name of functions) await checkFunction(page, frames, name);
    await checkLines(page, url, {...fixed, query}, functions[0]);
    await closeLines(page);

    await page.mouse.move(2, 2);
    await settled(page);
    if (values.screenshot) await page.screenshot({path: values.screenshot});
    if (values.upload) {
      await checkUpload(page, url, {...fixed, query, limit: '300'}, values.upload);
      await checkSource(page, url, {...fixed, query}, functions[0], values['screenshot-lines']);
    }
    if (complaints.length) throw new Mismatch(`the browser complained: ${complaints.join('; ')}`);
  } finally {
    await close();
  }
}

try {
  await main();
  console.log('page and API agree');
} catch (error) {
  console.error(error instanceof Mismatch ? `mismatch: ${error.message}` : error);
  process.exit(1);
}
