// The programs with short-lived processes: how many ended and failed, their CPU time, and their largest memory.
import {useMemo} from 'preact/hooks';
import type {Program, ProgramSum} from '../api/types.ts';
import {formatBytes, formatCount, formatDuration, formatPercent, printable} from '../model/format.ts';
import {
  cpuShare,
  placeOfProgram,
  processCount,
  programMatcherOf,
  programName,
  sortPrograms,
  type Programs,
  type ProgramSort,
} from '../model/process_events.ts';
import {selectProgram, setView, view} from '../state.ts';
import {SortHead} from './cells.tsx';

function Head({column, label}: {column: ProgramSort; label: string}) {
  const {processesSort, processesAscending} = view.value;
  const active = processesSort === column;
  const choose = () =>
    setView({processesSort: column, processesAscending: active ? !processesAscending : column === 'name'});
  const order = active ? (processesAscending ? 'ascending' : 'descending') : 'none';
  return <SortHead column={column} testId="processes-sort" label={label} order={order} choose={choose} />;
}

function FailedCell({sum}: {sum: ProgramSum}) {
  return (
    <td class="amount failed wide-only" title={`${formatCount(sum.failed)} of ${processCount(sum.processes)} failed`}>
      {sum.failed > 0 ? (
        <>
          <span class="amount-percent">{formatCount(sum.failed)}</span>
          <span class="amount-time">{formatPercent(sum.failed, sum.processes, 1)}</span>
        </>
      ) : (
        <span class="muted">–</span>
      )}
    </td>
  );
}

function ProcessesCell({sum}: {sum: ProgramSum}) {
  return (
    <td class="amount">
      <span class="amount-percent">{formatCount(sum.processes)}</span>
      {sum.failed > 0 && <span class="amount-time narrow-only">{`${formatCount(sum.failed)} failed`}</span>}
    </td>
  );
}

function CpuCell({sum, share}: {sum: ProgramSum; share: number}) {
  const time = formatDuration(sum.cpu_ns);
  const percent = formatPercent(share, 1, 1);
  return (
    <td class="amount" title={`${time}, ${percent} of the CPU time of the processes that ended`}>
      <span class="amount-percent">{percent}</span>
      <span class="amount-time">{time}</span>
    </td>
  );
}

function Row({program, share}: {program: Program; share: number}) {
  const name = programName(program);
  const matcher = programMatcherOf(program);
  const command = program.executable !== '' && program.name !== program.executable ? printable(program.name) : '';
  const detail = [placeOfProgram(program), command, printable(program.executable_path)].filter(Boolean).join(' · ');
  const content = (
    <>
      <span class="function-name">{name}</span>
      <span class="function-origin">{detail || ' '}</span>
    </>
  );
  const title = [name, detail].filter(Boolean).join('\n');
  return (
    <tr data-testid="program">
      <td class="name">
        {matcher ? (
          <button
            type="button"
            title={`Show only ${title}`}
            data-testid="program-choose"
            onClick={() => selectProgram(matcher)}
          >
            {content}
          </button>
        ) : (
          <div class="nameless">{content}</div>
        )}
        <span class="self-bar" style={{width: `${100 * share}%`}} />
      </td>
      <ProcessesCell sum={program} />
      <FailedCell sum={program} />
      <CpuCell sum={program} share={share} />
      <td class="amount wide-only" title="Largest resident memory of one process">
        {program.peak_rss_bytes > 0 ? formatBytes(program.peak_rss_bytes) : <span class="muted">–</span>}
      </td>
    </tr>
  );
}

function Others({others, share}: {others: ProgramSum; share: number}) {
  return (
    <tr class="others" data-testid="programs-others">
      <td class="name">All other programs</td>
      <ProcessesCell sum={others} />
      <FailedCell sum={others} />
      <CpuCell sum={others} share={share} />
      <td class="amount wide-only" />
    </tr>
  );
}

const keyOf = ({executable_path, name, container, pod, namespace}: Program) =>
  JSON.stringify([executable_path, name, container, pod, namespace]);

export function ProgramTable({answer}: {answer: Programs}) {
  const {processesSort, processesAscending} = view.value;
  const rows = useMemo(
    () => sortPrograms(answer.programs, processesSort, processesAscending),
    [answer, processesSort, processesAscending],
  );
  const {total, others, isList} = answer;
  if (!isList) {
    return (
      <p class="note" role="status">
        Loading…
      </p>
    );
  }
  const listed = `${formatCount(rows.length)} ${rows.length === 1 ? 'program' : 'programs'}`;
  const most = processesSort === 'cpu' ? 'the most CPU time' : 'the most processes';
  return (
    <>
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Programs with short-lived processes">
        <table class="top programs" data-testid="programs">
          <thead>
            <tr>
              <Head column="name" label="Program" />
              <Head column="processes" label="Processes" />
              <Head column="failed" label="Failed" />
              <Head column="cpu" label="CPU time" />
              <Head column="memory" label="Largest memory" />
            </tr>
          </thead>
          <tbody>
            {rows.map((program) => (
              <Row
                key={keyOf(program)}
                program={program}
                share={cpuShare(program, total)}
              />
            ))}
            {others && <Others others={others} share={cpuShare(others, total)} />}
          </tbody>
        </table>
      </div>
      <p class="table-foot" data-testid="programs-foot">
        {(answer.truncated || others ? `The ${listed} with ${most}` : listed) +
          ` · ${processCount(total.processes)} that ran for less than 10 s used ` +
          `${formatDuration(total.cpu_ns)} of CPU time`}
      </p>
    </>
  );
}
