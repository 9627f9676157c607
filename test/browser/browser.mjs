// Code that both browser tests share: a private chromium, a page that collects all its errors, and a reader of the
// flame graph. The reader learns the page's layout only from the page's documented attributes.
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {chromium} from 'playwright-core';

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export async function openBrowser({width = 1440, height = 900, colorScheme = 'light', ...options} = {}) {
  const profile = mkdtempSync(join(tmpdir(), 'tributary-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: flags,
    viewport: {width, height},
    colorScheme,
    reducedMotion: 'reduce',
    timezoneId: 'UTC',
    locale: 'en-GB',
    ...options,
  });
  context.setDefaultTimeout(20_000);
  const page = context.pages()[0] ?? (await context.newPage());
  const complaints = [];
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('pageerror', (error) => complaints.push(`page error: ${error.message}`));
  // The console also reports violations of the content security policy as errors.
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  const close = async () => {
    await context.close();
    rmSync(profile, {recursive: true, force: true});
  };
  return {page, complaints, close};
}

// Waits until the page has loaded and has drawn, and no zoom is in progress.
export async function settled(page) {
  await page.waitForSelector('[data-testid="main"][data-loading="false"]');
  if (await page.getByTestId('lines').count()) await page.waitForSelector('[data-testid="lines"][data-loading="false"]');
  // Nothing else waits for process events, so they have a mark of their own.
  await page.waitForSelector('[data-testid="processes"][data-loading="false"]');
  const flame = page.getByTestId('flame');
  if (await flame.count()) await page.waitForSelector('[data-testid="flame"][data-busy="false"]');
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

// Returns every frame of an API answer with its depth and its left edge in ns. Children are placed side by side from
// the left edge of their parent, in the order of the answer.
export function layOut(answer) {
  const {parent, name, total_ns, total_count, self_ns, self_count, kind, executable} = answer.nodes;
  const next = [];
  return parent.map((p, i) => {
    const frame = {
      index: i,
      parent: p,
      name: answer.names[name[i]],
      kind: kind[i],
      executable: answer.executables[executable[i]] ?? '',
      depth: 0,
      start: 0,
      totalNs: total_ns[i],
      totalCount: total_count[i],
      selfNs: self_ns[i],
      selfCount: self_count[i],
    };
    if (p >= 0) {
      frame.depth = next[p].depth + 1;
      frame.start = next[p].at;
      next[p].at += total_ns[i];
    }
    next[i] = {at: frame.start, depth: frame.depth};
    return frame;
  });
}

// Returns the point in the window at the middle of `frame` while `zoomed`, a frame of the same layout, fills the
// width.
export async function pointOf(page, frame, zoomed) {
  const canvas = page.getByTestId('flame');
  const {rowHeight, rows, orientation} = await canvas.evaluate((element) => ({...element.dataset}));
  const row = orientation === 'icicle' ? frame.depth : Number(rows) - 1 - frame.depth;
  const scroller = page.getByTestId('flame-scroll');
  await scroller.evaluate(
    (element, y) => {
      if (y < element.scrollTop || y > element.scrollTop + element.clientHeight)
        element.scrollTop = y - element.clientHeight / 2;
    },
    (row + 0.5) * Number(rowHeight),
  );
  await canvas.scrollIntoViewIfNeeded();
  const scrolled = await scroller.evaluate((element) => element.scrollTop);
  const box = await canvas.boundingBox();
  const share = (frame.start + frame.totalNs / 2 - zoomed.start) / zoomed.totalNs;
  return {
    x: box.x + Math.min(0.9999, Math.max(0.0001, share)) * box.width,
    y: box.y + (row + 0.5) * Number(rowHeight) - scrolled,
  };
}

export async function readTooltip(page) {
  const text = async (part) => {
    const element = page.getByTestId(`tooltip-${part}`);
    return (await element.count()) ? element.textContent() : null;
  };
  return {
    name: await text('name'),
    executable: await text('executable'),
    kind: await text('kind'),
    totalPercent: await text('total-percent'),
    totalTime: await text('total-time'),
    totalSamples: await text('total-samples'),
    selfPercent: await text('self-percent'),
    selfTime: await text('self-time'),
    selfSamples: await text('self-samples'),
    totalZoomed: await text('total-zoomed'),
  };
}

export async function hover(page, frame, zoomed) {
  const {x, y} = await pointOf(page, frame, zoomed);
  await page.mouse.move(x, y);
  await page.waitForFunction(
    (node) => document.querySelector('[data-testid="tooltip"]')?.getAttribute('data-node') === node,
    String(frame.index),
  );
  return readTooltip(page);
}

export async function click(page, frame, zoomed) {
  const {x, y} = await pointOf(page, frame, zoomed);
  await page.mouse.click(x, y);
  await settled(page);
}
