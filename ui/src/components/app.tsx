import {eventsLoading} from '../events.ts';
import {formatClock} from '../model/format.ts';
import {signInShown} from '../sign_in.ts';
import {graphData, loadedAt, loading, setView, view} from '../state.ts';
import {Executables} from './executables.tsx';
import {Filters} from './filters.tsx';
import {Flame} from './flame.tsx';
import {Header} from './header.tsx';
import {Icon} from './icons.tsx';
import {Lines} from './lines.tsx';
import {Processes} from './processes.tsx';
import {Segmented} from './segmented.tsx';
import {SignIn} from './sign_in.tsx';
import {StackHealth} from './stack_health.tsx';
import {Timeline} from './timeline.tsx';
import {TopTable} from './top_table.tsx';

// Shown if data is on screen, but a later request failed.
function StaleBanner() {
  const {value, error} = graphData.value;
  if (!value || !error) return null;
  return (
    <p class="banner" role="alert" data-testid="stale">
      <Icon name="warning" />
      {`${error.message} (The data shown was loaded at ${formatClock(loadedAt.value)}.)`}
      {view.value.live && ' The page keeps trying.'}
    </p>
  );
}

function Page() {
  // Without data, one card says so. A second card would only repeat it.
  const usable = (graphData.value.value?.total.ns ?? 0) > 0;
  const panes = usable || view.value.panes === 'table' ? view.value.panes : 'flame';
  return (
    <>
      <div class={`progress${loading.value || eventsLoading.value ? ' on' : ''}`} aria-hidden="true" />
      <main class="main" data-testid="main" data-loading={loading.value} data-loaded-at={loadedAt.value}>
        <div class="toolbar">
          <Filters />
          <Segmented
            name="Names"
            title="Show function names with or without the arguments of templates and generics"
            value={view.value.names}
            choose={(value) => setView({names: value})}
            choices={[
              ['full', 'f<int>'],
              ['short', 'f<…>'],
            ]}
          />
          <Segmented
            name="Panes"
            value={view.value.panes}
            choose={(value) => setView({panes: value, lines: '', linesIn: '', line: ''})}
            choices={[
              ['both', 'Both'],
              ['flame', 'Graph'],
              ['table', 'Table'],
            ]}
          />
        </div>
        <StaleBanner />
        <Timeline />
        <StackHealth />
        <Executables />
        <Processes />
        {view.value.lines !== '' ? (
          <Lines />
        ) : (
          <div class={`panes panes-${panes}`}>
            {panes !== 'table' && <Flame />}
            {panes !== 'flame' && <TopTable />}
          </div>
        )}
      </main>
    </>
  );
}

export function App() {
  return (
    <>
      <Header />
      {signInShown.value ? <SignIn /> : <Page />}
    </>
  );
}
