// A reducer's HTTP server with fixed answers: serves the built page and /api/v1. `scenario` chooses the failure.
import {createServer} from 'node:http';
import {readFile} from 'node:fs/promises';
import {join} from 'node:path';
import * as events from './events_fixtures.mjs';
import * as fixtures from './fixtures.mjs';
import {pythonFlamegraph} from './language_fixtures.mjs';
import {lines} from './lines_fixtures.mjs';

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export class MockServer {
  // scenario: normal | empty | error | truncated | large | templates | python | slow | lying | two_faced |
  // two_faced_health | two_faced_symbols | two_faced_lines | two_faced_unit | two_faced_events | lines_error | expired |
  // symbols_error | upload_slow | upload_cut | upload_too_large | upload_off | events_none | events_many |
  // events_missing | events_error | events_slow | events_lost | events_never | damaged
  scenario = 'normal';
  types = fixtures.types.one; // the types of the range's samples
  tokens = null; // token → {name, rights}; null: nobody needs to sign in
  tokenless = null; // the caller of requests without a token, if there are tokens; null: they get status 401
  authorizations = []; // header of every request below /api/v1/, or ''
  requests = []; // requested URLs below /api/v1/ whose caller was accepted, without whoami
  pushed = []; // executables whose names were uploaded
  uploads = []; // bodies, as text
  waiting = []; // requests that the scenarios `slow` and `events_slow` hold back
  heldUpload = new Promise((resolve) => (this.held = resolve));

  constructor(dist) {
    this.dist = dist;
    this.server = createServer((request, response) => void this.handle(request, response));
  }

  async listen(port = 0) {
    await new Promise((resolve) => this.server.listen(port, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  close() {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(resolve));
  }

  async handle(request, response) {
    const url = new URL(request.url, this.url);
    const headers = {'Content-Security-Policy': "default-src 'self'", 'X-Content-Type-Options': 'nosniff'};
    if (url.pathname.startsWith('/api/v1/')) {
      if (!this.admit(request, response, url, headers)) return;
      if (request.method === 'PUT') return void this.upload(request, response, headers);
      this.requests.push(url);
      const isHeld = this.scenario === 'events_slow' && url.pathname.includes('/events');
      if (this.scenario === 'slow' || isHeld) await new Promise((resolve) => this.waiting.push(resolve));
      const [code, answer] = this.answer(url, request.headers['user-agent'] ?? '');
      response.writeHead(code, {...headers, 'Content-Type': 'application/json; charset=utf-8'});
      response.end(JSON.stringify(answer));
      return;
    }
    const name = url.pathname === '/' ? 'index.html' : url.pathname.slice(1);
    if (!/^[a-z]+\.(html|js|css|svg)$/.test(name)) {
      response.writeHead(404, headers).end();
      return;
    }
    response.writeHead(200, {...headers, 'Content-Type': types[name.slice(name.lastIndexOf('.'))]});
    response.end(await readFile(join(this.dist, name)));
  }

  // Returns whether the request may continue. Otherwise answers it: status 401, status 403, or who the caller is.
  admit(request, response, url, headers) {
    const reply = (code, answer, more = {}) => {
      request.resume();
      response.writeHead(code, {...headers, ...more, 'Content-Type': 'application/json; charset=utf-8'});
      response.end(JSON.stringify(answer));
      return false;
    };
    const challenge = {'WWW-Authenticate': 'Bearer realm="tributary"'};
    const header = request.headers.authorization ?? '';
    this.authorizations.push(header);
    let caller = {name: '', signed_in_by: 'none', rights: ['read', 'send', 'upload', 'admin']};
    if (this.tokens) {
      const known = this.tokens[header.replace(/^Bearer /, '')];
      const advice = "sign in: send a token in the header 'Authorization: Bearer TOKEN'";
      if (known) caller = {...known, signed_in_by: 'token'};
      else if (header === '' && this.tokenless) caller = this.tokenless;
      else return reply(401, {error: header === '' ? advice : 'the token is not known'}, challenge);
    }
    if (url.pathname === '/api/v1/whoami') return reply(200, caller);
    const right = request.method === 'PUT' ? 'upload' : 'read';
    if (caller.rights.includes(right)) return true;
    return reply(403, {error: `this needs the right '${right}', which '${caller.name}' does not have`});
  }

  answerWaiting() {
    this.waiting.splice(0).forEach((release) => release());
  }

  // In the scenario `upload_slow`, an upload waits until a test calls this.
  async answerUpload() {
    const release = await this.heldUpload;
    this.heldUpload = new Promise((resolve) => (this.held = resolve));
    this.scenario = 'normal';
    release();
  }

  // The body decides the answer: the name of an executable is stored for it, `again` is known already, other bodies are
  // refused.
  async upload(request, response, headers) {
    const reply = (code, answer) => {
      response.writeHead(code, {...headers, 'Content-Type': 'application/json; charset=utf-8'});
      response.end(JSON.stringify(answer));
    };
    const {length} = this.uploads;
    this.uploads.push('');
    if (this.scenario === 'upload_too_large') {
      // Like the reducer: answer before the whole file has arrived, and close the connection.
      response.once('finish', () => setTimeout(() => request.socket.destroy(), 200));
      return reply(413, {error: 'the file is larger than 1000 bytes (--symbol-file-max-bytes)'});
    }
    if (this.scenario === 'upload_off') return reply(403, {error: 'this reducer accepts no uploads (--symbol-uploads off)'});
    for await (const piece of request) {
      if (this.scenario === 'upload_cut') return request.socket.destroy();
      this.uploads[length] += piece;
    }
    if (this.scenario === 'upload_slow') await new Promise((resolve) => this.held(resolve));
    const body = this.uploads[length];
    if (body === 'again') return reply(200, fixtures.uploaded(false));
    if (!['evil', 'libssl.so.3'].includes(body)) return reply(400, {error: `the file is neither an ELF file nor ${fixtures.hostile.image}`});
    this.pushed.push(body);
    return reply(201, fixtures.uploaded(true));
  }

  answer(url, userAgent) {
    const asked = url.searchParams.get('type') ?? 'cpu';
    const type = [fixtures.cpu, ...this.types].find(({name, unit}) => [name, `${name}:${unit}`].includes(asked));
    if (!type) return [400, {error: `type: there are no samples of type '${asked}'; the existing types are: cpu:nanoseconds`}];
    const [code, answer] = this.answerOfCpu(url, userAgent);
    if (code !== 200 || type === fixtures.cpu) return [code, answer];
    const lies = this.scenario === 'two_faced_unit' && userAgent.includes('Mozilla');
    return [code, fixtures.ofType(answer, lies ? {...type, unit: 'pages'} : type)];
  }

  answerOfCpu(url, userAgent) {
    const verb = url.pathname.slice('/api/v1/'.length);
    if (verb === 'status') {
      const status = this.scenario === 'damaged' ? fixtures.damagedStatus : fixtures.status;
      return [200, status(this.eventCounters())];
    }
    if (verb === 'types' && this.scenario !== 'error') return [200, {types: this.scenario === 'empty' ? [] : this.types}];
    const range = this.range(url);
    const keep = this.selected(url.searchParams.get('query') ?? '');
    if (typeof keep === 'string') return [400, {error: keep}];
    if (this.scenario === 'error')
      return [500, {error: 'The store is locked: another reducer uses <b>this</b> data folder.'}];
    if (verb === 'events' || verb.startsWith('events/')) return this.answerOfEvents(verb, url, keep, userAgent);
    switch (verb) {
      case 'flamegraph':
        if (this.scenario === 'empty') return [200, fixtures.emptyFlamegraph(range)];
        if (this.scenario === 'large') return [200, fixtures.largeFlamegraph(range)];
        if (this.scenario === 'python') return [200, pythonFlamegraph(range, url.searchParams)];
        if (this.scenario === 'templates') return [200, fixtures.templateFlamegraph(range, keep)];
        if (this.scenario === 'lying') return [200, {...fixtures.flamegraph(range), names: ['all']}];
        // The browser gets another answer than a script. live.mjs must notice.
        if (this.scenario === 'two_faced' && userAgent.includes('Mozilla'))
          return [200, fixtures.shiftedFlamegraph(range, keep)];
        return [200, fixtures.flamegraph(range, keep, this.scenario === 'truncated' ? 12345 : 0)];
      case 'timeline': {
        const buckets = Number(url.searchParams.get('buckets') ?? 120);
        return [200, fixtures.timeline(range, buckets, this.scenario === 'empty' ? 0 : 1)];
      }
      case 'rollouts':
        return [200, this.scenario === 'empty' ? {rollouts: [], truncated: false} : fixtures.rollouts(range)];
      case 'stack-health':
        if (this.scenario === 'empty') return [200, fixtures.emptyStackHealth()];
        if (this.scenario === 'expired') return [200, {...fixtures.stackHealth(keep), samples: 1234}];
        if (this.scenario === 'two_faced_health' && userAgent.includes('Mozilla'))
          return [200, fixtures.shiftedStackHealth(keep)];
        return [200, fixtures.stackHealth(keep)];
      case 'symbols':
        if (this.scenario === 'empty') return [200, fixtures.emptySymbols()];
        if (this.scenario === 'symbols_error') return [504, {error: 'the query took <b>longer</b> than 30 s'}];
        if (this.scenario === 'two_faced_symbols' && userAgent.includes('Mozilla'))
          return [200, fixtures.shiftedSymbols(keep)];
        return [200, fixtures.symbols(keep, this.pushed)];
      case 'lines': {
        if (this.scenario === 'lines_error') return [504, {error: 'the query took <b>longer</b> than 30 s'}];
        const [name, executable] = ['function', 'executable'].map((key) => url.searchParams.get(key) ?? '');
        const answer = lines(name, executable, this.scenario === 'empty' ? () => false : keep);
        // Add three samples to one line.
        if (this.scenario === 'two_faced_lines' && userAgent.includes('Mozilla')) answer.lines[0].total_ns += 3e9 / 19;
        return [200, answer];
      }
      case 'series':
        return [200, fixtures.series()];
      case 'top':
        return [200, fixtures.top(range)];
      default:
        return [404, {error: `no such endpoint: ${verb}`}];
    }
  }

  // A reducer of an earlier release has no counters of process events.
  eventCounters() {
    if (this.scenario === 'events_missing') return undefined;
    if (this.scenario === 'events_never') return {captured: 0, stored: 0, lost: {}, in_flight: 0};
    return this.scenario === 'events_lost' ? events.lossy : events.counters;
  }

  answerOfEvents(verb, url, keepProcess, userAgent) {
    if (/thread/.test(url.searchParams.get('query') ?? '')) return [400, {error: 'process events have no threads'}];
    if (this.scenario === 'events_missing') return [404, {error: `no such endpoint: ${verb}`}];
    if (this.scenario === 'events_error') return [500, {error: 'the query took <b>longer</b> than 30 s'}];
    const isEmpty = ['empty', 'events_none', 'events_never'].includes(this.scenario);
    const keep = (entry) => keepProcess({executable: entry.executable, pid: entry.pid, command: entry.name});
    const limit = Number(url.searchParams.get('limit') ?? 100);
    switch (verb) {
      case 'events/marks':
        if (this.scenario === 'events_many') return [200, events.manyMarks()];
        return [200, isEmpty ? events.noMarks : events.marks(keep)];
      case 'events/programs': {
        const answer = isEmpty ? events.noPrograms : events.programs(keep, limit, url.searchParams.get('sort'));
        const [first, ...rest] = answer.programs;
        const lies = this.scenario === 'two_faced_events' && userAgent.includes('Mozilla');
        return [200, lies ? {...answer, programs: [{...first, processes: first.processes + 1}, ...rest]} : answer];
      }
      case 'events':
        return [200, isEmpty ? events.noEvents : events.events(keep, limit, url.searchParams.get('cursor') ?? '')];
      default:
        return [404, {error: `no such endpoint: ${verb}`}];
    }
  }

  // Returns an absolute range unchanged, and the fixed range for a relative range.
  range(url) {
    const [from, to] = ['from', 'to'].map((name) => url.searchParams.get(name) ?? '');
    const absolute = /^\d+$/.test(from) && /^\d+$/.test(to);
    return absolute ? {from: Number(from), to: Number(to)} : {from: fixtures.from, to: fixtures.to};
  }

  // Implements the part of the selector language that the tests need: equality and patterns on three labels. Returns an
  // error message for any other selector.
  selected(query) {
    const wanted = {};
    const patterns = [];
    for (const [, label, operator, value] of query.matchAll(/([a-z_.]+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"/g)) {
      const field = {process_executable_name: 'executable', process_pid: 'pid', process_command: 'command'}[label];
      if (!field && label !== 'thread_name' && label !== 'thread_id')
        return `unknown label ${label}; did you mean process_pid?`;
      if (operator === '=~' && field) {
        patterns.push([field, new RegExp(`^(?:${value.replace(/\\(.)/g, '$1')})$`)]);
        continue;
      }
      if (operator !== '=') return `operator ${operator} is not one of this mock's`;
      if (field) wanted[field] = value.replace(/\\(.)/g, '$1');
    }
    return (process) =>
      Object.entries(wanted).every(([field, value]) => String(process[field]) === value) &&
      patterns.every(([field, pattern]) => pattern.test(String(process[field])));
  }
}
