// The test cases share this module: one mock reducer, one browser with one page, and the flame graph that the page
// should show. Importing the module sets up the reducer and the browser around the tests of the process.
import assert from 'node:assert/strict';
import {after, afterEach, before, beforeEach} from 'node:test';
import {layOut, openBrowser, settled} from './browser.mjs';
import * as fixtures from './fixtures.mjs';
import {MockServer} from './mock_server.mjs';

const dist = process.argv[2];
if (!dist) {
  console.error('usage: node mock_test.mjs DIST');
  process.exit(2);
}

export const range = {from: fixtures.from, to: fixtures.to};
export const fixed = `from=${range.from}&to=${range.to}`;
export const frames = layOut(fixtures.flamegraph(range));
export const root = frames[0];
export const frame = (name, executable) => {
  const found = frames.find((f) => f.name === name && (executable === undefined || f.executable === executable));
  assert.ok(found, `the fixture has a frame ${name}`);
  return found;
};
export const percent = (part, whole) => `${((part / whole) * 100).toFixed(2)}%`;

export let server;
export let browser;
export let page;

before(async () => {
  server = await new MockServer(dist).listen();
  browser = await openBrowser();
  page = browser.page;
});
after(async () => {
  await browser.close();
  await server.close();
});
beforeEach(() => {
  server.scenario = 'normal';
  server.types = fixtures.types.one;
  server.tokens = null;
  server.tokenless = null;
  server.authorizations.length = 0;
  server.requests.length = 0;
  server.pushed.length = 0;
  server.uploads.length = 0;
  browser.complaints.length = 0;
});
// After every test: no dialog opened, no script failed, nothing violated the content security policy.
afterEach(() => assert.deepEqual(browser.complaints, []));

export async function open(hash = fixed) {
  await page.goto('about:blank');
  await page.mouse.move(0, 0);
  await page.goto(`${server.url}/${hash ? `#${hash}` : ''}`);
  await settled(page);
}

export const byId = (id) => page.getByTestId(id);
export const hashParameter = (name) =>
  page.evaluate((key) => new URLSearchParams(location.hash.slice(1)).get(key), name);
export const lastParameter = (verb, name) =>
  server.requests
    .filter((url) => url.pathname.endsWith(`/${verb}`))
    .at(-1)
    ?.searchParams.get(name);
export const lastQuery = (verb) => lastParameter(verb, 'query');

// The browser reports every failed request on the console. Call this after a request that was meant to fail.
export function forgive(pattern) {
  browser.complaints.splice(0, Infinity, ...browser.complaints.filter((text) => !pattern.test(text)));
}
