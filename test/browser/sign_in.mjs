// Signs in to a running reducer with its page, as users with different rights do.
//
//   node sign_in.mjs --url http://127.0.0.1:4040 --token-file FILE --upload FILE [--screenshot DIR]
//
// --token-file: the reducer's --http-token-file. Its users must be ann (admin), ben (read) and cleo (send).
// --upload: a file with symbols. ann can send it, ben cannot.
// The last 15 minutes must have samples, and no more samples may arrive.
// Exit code 0: the page behaves as it should; 1: it does not, reported on standard error; 2: usage.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {parseArgs} from 'node:util';
import {openBrowser, settled} from './browser.mjs';

const {values} = parseArgs({
  options: {
    url: {type: 'string'},
    'token-file': {type: 'string'},
    upload: {type: 'string'},
    screenshot: {type: 'string'},
  },
});
if (!values.url || !values['token-file'] || !values.upload) {
  console.error('usage: node sign_in.mjs --url URL --token-file FILE --upload FILE [--screenshot DIR]');
  process.exit(2);
}
const lines = readFileSync(values['token-file'], 'utf8').trim().split('\n');
const tokens = Object.fromEntries(lines.map((line) => line.split(/\s+/)).map(([token, , name]) => [name, token]));

async function check(page) {
  const byId = (id) => page.getByTestId(id);
  const picture = (name) =>
    values.screenshot ? page.screenshot({path: join(values.screenshot, `${name}.png`)}) : undefined;
  const submit = async (token) => {
    await byId('token').fill(token);
    await byId('submit-token').click();
  };
  const signIn = async (name) => {
    await submit(tokens[name]);
    await byId('account').filter({hasText: name}).waitFor();
    await settled(page);
  };
  const signOut = async () => {
    await byId('sign-out').click();
    await byId('sign-in').waitFor();
  };
  const upload = async () => {
    await byId('upload-files').setInputFiles(values.upload);
    await byId('upload-progress').filter({hasText: 'All files are finished'}).waitFor();
    await settled(page);
    return byId('upload-outcome').textContent();
  };

  await page.goto(`${values.url}/#executables=open&live=0`);
  await byId('sign-in').waitFor();
  await submit(tokens.ann.replace(/.$/, '~'));
  await byId('token-problem').filter({hasText: 'the token is not known'}).waitFor();
  await picture('sign_in');

  await signIn('ann');
  assert.match(page.url(), /#executables=open&live=0$/);
  const headers = {Authorization: `Bearer ${tokens.ann}`};
  const response = await fetch(`${values.url}/api/v1/flamegraph?from=-15m&to=now`, {headers});
  assert.equal(response.status, 200);
  const {count} = (await response.json()).total;
  assert.ok(count > 0);
  assert.match(await byId('totals').textContent(), new RegExp(`\\b${count} samples`));
  assert.match(await upload(), /^stored: /);
  await picture('signed_in');
  await signOut();

  await signIn('ben');
  assert.match(await byId('totals').textContent(), new RegExp(`\\b${count} samples`));
  assert.match(await upload(), /^refused: .*'upload'.*'ben'/);
  await signOut();

  await signIn('cleo');
  assert.match(await byId('error').first().textContent(), /'read'.*'cleo'/);
  await picture('no_right');
  await signOut();
}

const {page, complaints, close} = await openBrowser({width: 1440, height: 900});
try {
  await check(page);
  // Requests that the reducer refuses are part of the test. The browser reports each of them.
  assert.deepEqual(complaints.filter((text) => !/status of 40[13]/.test(text)), []);
  console.log('the page signs in and out, and names the rights that are missing');
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await close();
}
