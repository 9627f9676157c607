import type {Fates, Refusal, StatusAnswer, StatusNode} from '../api/types.ts';
import {formatBytes, formatCount, formatDuration, formatPercent, printable} from '../model/format.ts';
import {health, lostEventsOf, lostTotal, optedOut, optedOutOf, type Health} from '../model/health.ts';
import {cutShort, endingOf, inOrder, sum} from '../model/stack_endings.ts';
import {signInShown} from '../sign_in.ts';
import {graphData, status, themeChoice, type ThemeChoice} from '../state.ts';
import {Account} from './account.tsx';
import {Icon, Logo} from './icons.tsx';
import {Popover} from './popover.tsx';
import {StackBar} from './stack_health.tsx';
import {TimePicker} from './time_picker.tsx';

function Row({name, value}: {name: string; value: string}) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

function CounterRows({counters, things, testPrefix}: {counters: Fates; things: string; testPrefix: string}) {
  const reasons = Object.entries(counters.lost).filter(([reason, count]) => count > 0 && reason !== optedOut);
  const optedOutCount = optedOutOf(counters);
  const cell = (name: string, value: number) => (
    <div class="counter" data-testid={`${testPrefix}-${name.replaceAll(' ', '-')}`}>
      <span class="counter-value">{formatCount(value)}</span>
      <span class="counter-name">{name}</span>
    </div>
  );
  return (
    <>
      <div class="counters">
        {cell('captured', counters.captured)}
        {cell('stored', counters.stored)}
        {cell('lost', lostTotal(counters))}
        {cell('on the way', counters.in_flight)}
      </div>
      {reasons.length > 0 && (
        <dl class="facts warn">
          {reasons.map(([reason, count]) => (
            <Row key={reason} name={`lost: ${reason.replaceAll('_', ' ')}`} value={`${formatCount(count)} ${things}`} />
          ))}
        </dl>
      )}
      {optedOutCount > 0 && (
        <dl class="facts" data-testid={`${testPrefix}-opted-out`}>
          <Row name="opted out" value={`${formatCount(optedOutCount)} ${things}`} />
        </dl>
      )}
    </>
  );
}

function StacksSinceStart({stacks}: {stacks: Record<string, number>}) {
  const whole = sum(stacks);
  if (whole === 0) return null;
  const kinds = inOrder(stacks);
  return (
    <div class="stacks">
      <StackBar endings={stacks} />
      <dl class="facts">
        {kinds.map(([kind, count]) => (
          <Row key={kind} name={`stacks: ${endingOf(kind).words}`} value={formatPercent(count, whole, 1)} />
        ))}
      </dl>
    </div>
  );
}

// “trie_quota 1,200 · old_days 3”
function refusedText(refusals: Refusal[]) {
  return refusals.map(({reason, amount}) => `${reason} ${formatCount(amount)}`).join(' · ');
}

function NodeCard({node, refusals}: {node: StatusNode; refusals: Refusal[]}) {
  const lostEvents = lostEventsOf(node);
  const refused = refusals.filter((refusal) => refusal.node === node.id);
  return (
    <li class="node">
      <p class="node-title">
        <span class={`dot ${node.connected ? 'good' : 'poor'}`} />
        <strong>{printable(node.host || node.id)}</strong>
        <span class="muted">{node.connected ? 'connected' : 'not connected'}</span>
      </p>
      <p class="muted small">
        {`Linux ${printable(node.kernel)} · ${printable(node.architecture)} · ${node.cpus} CPUs · ` +
          `${node.sample_rate_hz} Hz · ` +
          `${formatCount(node.captured)} captured · ${formatCount(node.stored)} stored · ` +
          `${formatCount(lostTotal(node))} lost · ${formatBytes(node.wire_bytes)} received` +
          (lostEvents > 0 ? ` · ${formatCount(lostEvents)} process events lost` : '')}
      </p>
      {refused.length > 0 && <p class="small">{`refused: ${refusedText(refused)}`}</p>}
    </li>
  );
}

const entriesShown = 50; // of each list

function More({list, things}: {list: unknown[]; things: string}) {
  const more = list.length - entriesShown;
  return more > 0 ? <p class="note">{`${formatCount(more)} more ${things}; “tributary status” lists all.`}</p> : null;
}

function StatusPanel({answer}: {answer: StatusAnswer}) {
  const {reducer} = answer;
  const events = answer.total.process_events;
  const refusals = answer.refusals ?? [];
  const damage = answer.damage ?? [];
  const known = new Set(answer.nodes.map((node) => node.id));
  // Collectors with refusals come first, because the list is cut.
  const refused = new Set(refusals.map((refusal) => refusal.node));
  const nodes = [...answer.nodes].sort((a, b) => Number(refused.has(b.id)) - Number(refused.has(a.id)));
  const strangers = refusals.filter((refusal) => !known.has(refusal.node));
  return (
    <div class="status-panel">
      <h2>Samples of all collectors</h2>
      <CounterRows counters={answer.total} things="samples" testPrefix="status" />
      <StacksSinceStart stacks={answer.stack_health} />
      {events && (
        <>
          <h2>Process events of all collectors</h2>
          <CounterRows counters={events} things="events" testPrefix="status-events" />
        </>
      )}
      <h2>{`Collectors (${formatCount(answer.nodes.length)})`}</h2>
      {answer.nodes.length === 0 && (
        <p class="note">No collector has reported yet. Start kernel-collector on a machine.</p>
      )}
      <ul class="nodes">
        {nodes.slice(0, entriesShown).map((node) => (
          <NodeCard key={node.id} node={node} refusals={refusals} />
        ))}
      </ul>
      <More list={nodes} things="collectors" />
      {strangers.length > 0 && (
        <>
          <h2>Refused, from other nodes</h2>
          <ul class="nodes">
            {strangers.slice(0, entriesShown).map((refusal) => (
              <li key={`${refusal.node} ${refusal.reason}`} class="small">
                {`${printable(refusal.node)}: ${refusedText([refusal])}`}
              </li>
            ))}
          </ul>
          <More list={strangers} things="refusals" />
        </>
      )}
      {damage.length > 0 && (
        <>
          <h2>Damaged data</h2>
          <p class="note">Run “tributary check” on the reducer’s data directory.</p>
          <ul class="nodes">
            {damage.slice(0, entriesShown).map((entry) => (
              <li key={`${entry.shard} ${entry.kind}`} class="small">
                {`shard ${entry.shard}, ${entry.kind}: ${formatCount(entry.count)} (${printable(entry.reason)})`}
              </li>
            ))}
          </ul>
          <More list={damage} things="kinds of damage" />
        </>
      )}
      <h2>Reducer</h2>
      <dl class="facts">
        <Row name="version" value={answer.version} />
        <Row name="uptime" value={formatDuration(answer.uptime_s * 1e9)} />
        <Row name="CPU used" value={formatDuration(reducer.cpu_seconds * 1e9)} />
        <Row name="memory" value={formatBytes(reducer.rss_bytes)} />
        <Row name="disk" value={formatBytes(reducer.disk_bytes)} />
        <Row name="symbol tables" value={formatCount(reducer.symbol_tables)} />
      </dl>
    </div>
  );
}

function StatusButton() {
  const {value, error} = status.value;
  const unreachable = error ?? (graphData.value.error?.status === 0 ? graphData.value.error : null);
  const forbidden: Health = {level: 'unknown', title: 'No right to see the status'};
  const state = unreachable?.status === 403 ? forbidden : health(value, unreachable !== null);
  const lostEvents = value ? lostEventsOf(value.total) : 0;
  const short = value && cutShort(value.stack_health);
  const more = lostEvents > 0 ? `${formatCount(lostEvents)} process events lost` : short;
  const label = (
    <>
      <span class={`dot ${state.level}`} />
      <span class="status-title">{state.title}</span>
      {value && !unreachable && (
        <span class="status-numbers">
          {`${formatCount(value.total.captured)} captured · ${formatCount(value.total.stored)} stored · ` +
            `${formatCount(lostTotal(value.total))} lost`}
          {more && <span class="wide-only">{` · ${more}`}</span>}
        </span>
      )}
      <Icon name="chevron" />
    </>
  );
  return (
    <Popover name="Status" kind="button status" label={label}>
      {() => (value ? <StatusPanel answer={value} /> : <p class="note">{error?.message ?? 'Loading…'}</p>)}
    </Popover>
  );
}

const nextTheme: Record<ThemeChoice, ThemeChoice> = {system: 'light', light: 'dark', dark: 'system'};
const themeIcon = {system: 'system', light: 'sun', dark: 'moon'} as const;

function ThemeButton() {
  const choice = themeChoice.value;
  const words = `Theme: ${choice}`;
  return (
    <button
      type="button"
      class="button icon-only"
      aria-label={words}
      title={words}
      data-testid="theme"
      onClick={() => (themeChoice.value = nextTheme[choice])}
    >
      <Icon name={themeIcon[choice]} />
    </button>
  );
}

export function Header() {
  return (
    <header class="header">
      <a class="brand" href="#" aria-label="Tributary, start view">
        <Logo />
        <span>Tributary</span>
      </a>
      {!signInShown.value && <StatusButton />}
      <span class="spring" />
      {!signInShown.value && (
        <>
          <TimePicker />
          <Account />
        </>
      )}
      <ThemeButton />
    </header>
  );
}
