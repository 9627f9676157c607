import assert from 'node:assert/strict';
import {describe, test} from 'node:test';
import {click, settled} from './browser.mjs';
import * as fixtures from './fixtures.mjs';
import {fixed, root, frame, server, page, open, byId, hashParameter, forgive} from './mock_harness.mjs';

const tokens = {
  'token-of-ann-0001': {name: 'ann', rights: ['read', 'send', 'upload', 'admin']},
  'token-of-ben-0002': {name: 'ben', rights: ['read']},
  'token-of-cleo-003': {name: 'cleo', rights: ['send', 'upload']},
  'token-of-mal-0004': {name: fixtures.hostile.image, rights: ['read', 'upload']},
};
const [ann, ben, cleo, mal] = Object.keys(tokens);
const stored = () => page.evaluate(() => sessionStorage.getItem('token'));

// Opens the page, which has no token yet.
async function openSignIn(hash = fixed) {
  server.tokens = tokens;
  await page.goto('about:blank');
  await page.goto(`${server.url}/#${hash}`);
  await byId('sign-in').waitFor();
}

async function submit(token) {
  await byId('token').fill(token);
  await byId('submit-token').click();
}

async function signIn(token) {
  await submit(token);
  await byId('account').waitFor();
  await settled(page);
}

const problem = (text) => byId('token-problem').filter({hasText: text}).waitFor();

// A test in a tab that has no token before and after it.
const signInTest = (name, body) =>
  test(name, async () => {
    try {
      await body();
    } finally {
      await page.evaluate(() => sessionStorage.clear());
      forgive(/status of 401/);
    }
  });

describe('sign-in', () => {
  signInTest('a wrong token is refused with the reason, and the right one shows the page at the same place', async () => {
    await openSignIn(`${fixed}&search=spin&executables=open`);
    assert.equal(await byId('main').count(), 0);
    assert.equal(await byId('token').getAttribute('type'), 'password');
    assert.ok(await byId('token').evaluate((field) => field === document.activeElement));
    assert.match(await byId('sign-in-reason').textContent(), /The reducer says: sign in: send a token/);
    assert.match(await byId('sign-in').textContent(), /--http-token-file/);
    await submit('ann');
    await problem('not a whole token');
    await submit(`${ann} admin ann`);
    await problem('first word of a line');
    await submit(`${ann}\u0007`);
    await problem('only letters');
    await submit('token-of-nobody-5');
    await problem('refused this token: the token is not known');
    assert.equal(await stored(), null);
    assert.equal(await byId('main').count(), 0);

    server.authorizations.length = 0;
    await signIn(` ${ann}\n`); // as pasted
    assert.equal(await hashParameter('search'), 'spin');
    assert.equal(await hashParameter('executables'), 'open');
    assert.equal(await byId('search').inputValue(), 'spin');
    assert.ok((await byId('executable').count()) > 0);
    assert.ok(server.authorizations.length > 5);
    assert.deepEqual([...new Set(server.authorizations)], [`Bearer ${ann}`]);
  });

  signInTest('the token stays in the tab, and signing out forgets it', async () => {
    await openSignIn();
    await signIn(ann);
    await click(page, frame('step'), root);
    const zoom = await hashParameter('zoom');
    assert.match(await byId('account').textContent(), /^Signed in as ann$/);
    assert.equal(await byId('account').getAttribute('title'), 'Signed in by a token. Rights: read, send, upload, admin.');
    assert.equal(await stored(), ann);
    const elsewhere = await page.evaluate(() => [JSON.stringify(localStorage), document.cookie, location.href].join());
    assert.ok(!elsewhere.includes(ann), elsewhere);
    await page.reload();
    await settled(page);
    assert.match(await byId('account').textContent(), /ann/);

    await byId('sign-out').click();
    await byId('sign-in').waitFor();
    assert.equal(await stored(), null);
    assert.equal(await byId('account').count(), 0);
    assert.equal(await hashParameter('zoom'), zoom);
    await signIn(ben);
    assert.equal(await byId('flame').getAttribute('data-zoom'), String(frame('step').index));
    assert.match(await byId('account').textContent(), /ben/);
  });

  signInTest('a refused tab sends no more requests, and continues when its user signs in again', async () => {
    await page.clock.install();
    try {
      await openSignIn('');
      await signIn(ann);
      server.tokens = {[ben]: tokens[ben]};
      await page.clock.runFor(5100);
      await byId('sign-in').waitFor();
      assert.match(await byId('sign-in-reason').textContent(), /the token is not known/);
      assert.equal(await stored(), null);
      const asked = server.authorizations.length;
      await page.clock.runFor(60_000);
      assert.equal(server.authorizations.length, asked);
      await signIn(ben);
      const before = server.requests.length;
      await page.clock.runFor(5100);
      await settled(page);
      assert.ok(server.requests.length > before, 'live again');
    } finally {
      await page.clock.resume();
    }
  });

  signInTest('names the right that is missing', async () => {
    await openSignIn(`${fixed}&executables=open`);
    await signIn(cleo);
    const shown = await byId('error').first().textContent();
    assert.match(await byId('open-status').textContent(), /^No right to see the status/);
    assert.match(shown, /You may not see this.*this needs the right 'read', which 'cleo' does not have/);
    await byId('error').first().getByRole('button', {name: 'Use another token'}).click();
    assert.equal(await byId('sign-in-reason').count(), 0);
    await byId('sign-in').getByRole('button', {name: 'Cancel'}).click();
    await byId('error').first().getByRole('button', {name: 'Use another token'}).click();
    await signIn(ben);
    assert.equal(await byId('error').count(), 0);
    assert.match(await byId('upload-right').textContent(), /the right “upload”/);
    await byId('upload-files').setInputFiles({name: 'evil', mimeType: '', buffer: Buffer.from('evil')});
    await byId('upload-outcome').filter({hasText: "refused: this needs the right 'upload'"}).waitFor();
    assert.equal(server.uploads.length, 0);
    forgive(/status of 403/);
  });

  signInTest('files wait until the user has signed in again', async () => {
    await openSignIn(`${fixed}&executables=open`);
    await signIn(ann);
    server.tokens = {[mal]: tokens[mal]};
    const file = (name, text) => ({name, mimeType: '', buffer: Buffer.from(text)});
    await byId('upload-files').setInputFiles([file('evil', 'evil'), file('two', 'again')]);
    await byId('sign-in').waitFor();
    assert.deepEqual(server.uploads, []);
    await signIn(mal);
    await byId('upload-progress').filter({hasText: 'All files are finished'}).waitFor();
    await settled(page);
    assert.deepEqual(server.uploads, ['evil', 'again']);
    assert.equal(await byId('account').textContent(), `Signed in as ${fixtures.hostile.image}`);
  });

  signInTest('anonymous readers may sign in for more rights', async () => {
    server.tokens = tokens;
    server.tokenless = {name: '', signed_in_by: 'none', rights: ['read']};
    await open();
    assert.equal(await byId('account').count(), 0);
    await byId('open-sign-in').click();
    await signIn(ann);
    assert.equal(await byId('open-sign-in').count(), 0);
  });

  signInTest('a user with a certificate has a name and does not sign out', async () => {
    server.tokens = tokens;
    server.tokenless = {name: 'dora', signed_in_by: 'certificate', rights: ['read', 'upload']};
    await open();
    assert.equal(await byId('account').textContent(), 'Signed in as dora');
    assert.equal(await byId('account').getAttribute('title'), 'Signed in by a certificate. Rights: read, upload.');
    assert.equal(await byId('sign-out').count() + (await byId('open-sign-in').count()), 0);
  });

  signInTest('a reducer without sign-in shows neither name nor buttons', async () => {
    await open();
    for (const id of ['account', 'open-sign-in', 'sign-out']) assert.equal(await byId(id).count(), 0, id);
    assert.ok(server.authorizations.every((header) => header === ''));
  });

  signInTest('fits a phone', async () => {
    await page.setViewportSize({width: 390, height: 800});
    try {
      await openSignIn();
      await submit('ann');
      await problem('not a whole token');
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
      await signIn(mal);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
    } finally {
      await page.setViewportSize({width: 1440, height: 900});
    }
  });
});
