// How the stacks of the selection ended: one line. A button opens the reasons, and the executables that cut stacks
// short.
import type {StackHealthAnswer, StackHealthExecutable} from '../api/types.ts';
import {formatCount, formatPercent, formatSamples, printable} from '../model/format.ts';
import {completeShare, endingOf, inOrder, matcherOf, sum} from '../model/stack_endings.ts';
import {graphData, selectProgram, setView, stackHealth, view} from '../state.ts';
import {Icon} from './icons.tsx';

// Endings of one level are distinguished by the strength of their colour.
function shades(endings: Record<string, number>): Map<string, {level: string; opacity: number}> {
  const seen: Record<string, number> = {};
  return new Map(
    inOrder(endings).map(([name]) => {
      const {level} = endingOf(name);
      const before = (seen[level] = (seen[level] ?? -1) + 1);
      return [name, {level, opacity: Math.max(0.4, 1 - 0.2 * before)}];
    }),
  );
}

export function StackBar({endings}: {endings: Record<string, number>}) {
  const whole = sum(endings);
  const shade = shades(endings);
  return (
    <div class="stack-bar" aria-hidden="true">
      {inOrder(endings).map(([name, count]) => (
        <span
          key={name}
          class={shade.get(name)!.level}
          title={`${endingOf(name).words}: ${formatPercent(count, whole, 1)}`}
          style={{width: `${(100 * count) / whole}%`, opacity: shade.get(name)!.opacity}}
        />
      ))}
    </div>
  );
}

function Endings({endings}: {endings: Record<string, number>}) {
  const whole = sum(endings);
  const shade = shades(endings);
  return (
    <ul class="endings" data-testid="health-endings">
      {inOrder(endings).map(([name, count]) => {
        const {words, meaning, advice} = endingOf(name);
        const {level, opacity} = shade.get(name)!;
        return (
          <li key={name} data-testid={`health-${name}`}>
            <span class={`swatch ${level}`} style={{opacity}} />
            <span class="ending-words">{words}</span>
            <span class="ending-share">{formatPercent(count, whole, 2)}</span>
            <span class="ending-count">{formatSamples(count)}</span>
            <p>
              {meaning}
              {advice && ` ${advice}`}
            </p>
          </li>
        );
      })}
    </ul>
  );
}

function Culprit({executable, whole}: {executable: StackHealthExecutable; whole: number}) {
  const matcher = matcherOf(executable);
  const programs = executable.programs.map(printable).join(', ');
  const choose = () => matcher && selectProgram(matcher);
  const reasons = inOrder(executable.endings)
    .map(([name, count]) => `${endingOf(name).words} ${formatCount(count)}`)
    .join(' · ');
  return (
    <li>
      <button
        type="button"
        disabled={!matcher}
        title={matcher ? `Show only ${programs}` : undefined}
        data-testid="health-executable"
        onClick={choose}
      >
        <span class="culprit-name">{printable(executable.name)}</span>
        <span class="ending-share">{formatPercent(executable.samples, whole, 2)}</span>
        <span class="ending-count">{formatSamples(executable.samples)}</span>
        <span class="culprit-detail">
          {reasons}
          {programs && programs !== printable(executable.name) && ` · in ${programs}`}
        </span>
      </button>
    </li>
  );
}

function Culprits({answer}: {answer: StackHealthAnswer}) {
  return (
    <div class="culprits">
      <h2>Where incomplete stacks end</h2>
      {answer.executables.length === 0 ? (
        <p class="note">All stacks are complete, except stacks that are only in the kernel.</p>
      ) : (
        <>
          <p class="hint">
            Stack walks ended early in these executables, worst first. Choose an executable to filter by its program.
          </p>
          <ul data-testid="health-executables">
            {answer.executables.map((executable) => (
              <Culprit
                key={`${executable.build_id} ${executable.name}`}
                executable={executable}
                whole={answer.samples}
              />
            ))}
          </ul>
        </>
      )}
      {answer.truncated_executables > 0 && (
        <p class="hint">{`${formatCount(answer.truncated_executables)} more executables are not listed.`}</p>
      )}
    </div>
  );
}

// Endings are kept as long as single samples. The sums for the graph are kept longer.
function Coverage({answer}: {answer: StackHealthAnswer}) {
  const shown = graphData.value.value?.total.count ?? 0;
  if (answer.samples >= shown * 0.9) return null;
  return (
    <p class="banner" data-testid="health-coverage">
      <Icon name="warning" />
      {`Based on ${formatCount(answer.samples)} of ${formatSamples(shown)}: endings of stacks are stored only as ` +
        'long as single samples (--retention-raw of the reducer).'}
    </p>
  );
}

export function StackHealth() {
  const {value: answer, error} = stackHealth.value;
  const open = view.value.stacks === 'open';
  const share = answer && completeShare(answer.endings);
  if (answer ? answer.samples === 0 : !error) return null;
  return (
    <section class="card health" aria-label="Stack health" data-testid="health">
      <div class="card-head">
        <h1>Stack health</h1>
        {answer ? (
          <>
            <p class="health-share" data-testid="health-share">
              <span class={`dot ${share?.level ?? 'good'}`} />
              {share ? `${share.text} of stacks complete` : 'kernel stacks only'}
            </p>
            <StackBar endings={answer.endings} />
            <button
              type="button"
              class="button"
              aria-expanded={open}
              data-testid="health-details"
              onClick={() => setView({stacks: open ? 'closed' : 'open'})}
            >
              {open ? 'Hide' : 'Reasons'}
              <Icon name="chevron" />
            </button>
          </>
        ) : (
          <p class="readout" role="alert">
            {error?.message}
          </p>
        )}
      </div>
      {answer && open && (
        <>
          <Coverage answer={answer} />
          <div class="health-body">
            <Endings endings={answer.endings} />
            <Culprits answer={answer} />
          </div>
        </>
      )}
    </section>
  );
}
