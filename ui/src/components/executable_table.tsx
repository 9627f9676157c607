// The executables, most samples first: source and origin of their names, and the share of addresses without a name.
import type {SeriesProcess, SymbolExecutable, SymbolsAnswer, SymbolTable} from '../api/types.ts';
import {formatBytes, formatCount, formatPercent, formatSamples, printable} from '../model/format.ts';
import {
  nodesOf,
  originOf,
  programMatcher,
  shortBuildId,
  sourceOf,
  unnamedShare,
  wasSampled,
} from '../model/symbol_words.ts';
import {selectProgram, series} from '../state.ts';
import {Icon} from './icons.tsx';

function Name({executable, processes}: {executable: SymbolExecutable; processes: readonly SeriesProcess[]}) {
  const name = printable(executable.name) || (executable.build_id ? 'name not known' : 'no name');
  const path = printable(executable.path);
  const id = printable(executable.build_id);
  const matcher = programMatcher(executable, processes);
  const choose = () => matcher && selectProgram(matcher);
  return (
    <th scope="row" class="executable">
      {matcher ? (
        <button type="button" title={`Show only ${name}`} data-testid="executable-choose" onClick={choose}>
          {name}
        </button>
      ) : (
        <span class="executable-name">{name}</span>
      )}
      <span class="executable-detail">
        {path && path !== name && <span title={path}>{path}</span>}
        {id ? (
          <code title={`build-id ${id}`}>{shortBuildId(id)}</code>
        ) : (
          <span title="The reducer cannot store names for this file. It has no build-id, and its content was not read.">
            no build-id
          </span>
        )}
      </span>
    </th>
  );
}

function Contested() {
  return (
    <span
      class="contested"
      title={
        'Different files have this build-id. The symbol table from the most trusted origin is kept, and may be wrong ' +
        'for some of these files.'
      }
    >
      <Icon name="warning" />
      contested
    </span>
  );
}

function TableCells({table}: {table: SymbolTable | null}) {
  if (!table) {
    return (
      <>
        <td class="source none">none</td>
        <td class="wide-only" />
        <td class="wide-only" />
      </>
    );
  }
  const {words, meaning} = sourceOf(table.source);
  const functions = formatCount(table.functions);
  return (
    <>
      <td class="source">
        <span title={meaning}>{printable(words)}</span>
        {table.contested && <Contested />}
        <span class="narrow-only">{`from ${printable(originOf(table.origin))}`}</span>
      </td>
      <td class="wide-only" title={printable(nodesOf(table))}>
        {printable(originOf(table.origin))}
      </td>
      <td class="wide-only number" title={formatBytes(table.bytes)}>
        {functions}
      </td>
    </>
  );
}

function Row({executable, whole}: {executable: SymbolExecutable; whole: number}) {
  const {total_ns, total_count, self_count, addresses, unnamed_addresses} = executable;
  const unnamed = unnamedShare(unnamed_addresses, addresses);
  return (
    <tr data-testid="executable">
      <Name executable={executable} processes={series.value.value?.processes ?? []} />
      {wasSampled(executable) ? (
        <td
          class="number"
          title={
            `${formatSamples(total_count)} with this file on the stack, ${formatCount(self_count)} in its own code`
          }
        >
          {formatPercent(total_ns, whole, 1)}
          <span class="second wide-only">{formatSamples(total_count)}</span>
        </td>
      ) : (
        <td class="number muted" title="No sample of this selection has this file on the stack">
          –
        </td>
      )}
      <TableCells table={executable.symbols} />
      <td
        class="number"
        title={unnamed ? `${formatCount(unnamed_addresses)} of ${formatCount(addresses)} addresses have no name` : ''}
      >
        {unnamed ? (
          <>
            <span class={`unnamed ${unnamed.level}`}>{unnamed.text}</span>
            <span class="second wide-only">{`${formatCount(unnamed_addresses)} of ${formatCount(addresses)}`}</span>
          </>
        ) : (
          '–'
        )}
      </td>
    </tr>
  );
}

export function ExecutableTable({answer}: {answer: SymbolsAnswer}) {
  if (answer.executables.length === 0) {
    return (
      <p class="note" data-testid="executables-empty">
        Nothing was sampled in this selection, and no symbol tables are stored yet. If you send files now, later samples
        get names from them.
      </p>
    );
  }
  return (
    <>
      <div class="executables-scroll" tabIndex={0} role="region" aria-label="List of executables">
        <table data-testid="executables-table">
          <thead>
            <tr>
              <th scope="col">Executable</th>
              <th scope="col" class="number">
                Samples
              </th>
              <th scope="col">Names from</th>
              <th scope="col" class="wide-only">
                Origin
              </th>
              <th scope="col" class="wide-only number">
                Functions
              </th>
              <th scope="col" class="number" title="Share of the distinct sampled addresses that have no name">
                No name
              </th>
            </tr>
          </thead>
          <tbody>
            {answer.executables.map((executable) => (
              <Row
                key={`${executable.build_id} ${executable.path}`}
                executable={executable}
                whole={answer.total.ns}
              />
            ))}
          </tbody>
        </table>
      </div>
      {answer.truncated > 0 && (
        <p class="table-foot">
          {`${formatCount(answer.truncated)} more executables are not listed. ` +
            '“tributary symbols --limit N” lists N executables.'}
        </p>
      )}
    </>
  );
}
