// Chooses the type of samples that the page shows, among the types in the range. Not shown if there is only one type.
import type {SampleType} from '../api/types.ts';
import {formatCount} from '../model/format.ts';
import {askedType, cpuTime, isCpuTime, keyOf, measureLabel, measureOf, shownWord} from '../model/measure.ts';
import {setView, shownType, types, view} from '../state.ts';
import {Icon} from './icons.tsx';
import {Popover} from './popover.tsx';

const shownMax = 100;

const titleOf = (type: SampleType) => measureLabel(measureOf({...type, type: type.name}));

// A type that is not in the list is shown as it is written in the address.
function choiceTitle(offered: readonly SampleType[], asked: string): string {
  if (asked === '') return measureLabel(cpuTime);
  const chosen = offered.find((type) => keyOf(type, offered) === asked);
  return chosen ? titleOf(chosen) : shownWord(asked);
}

export function TypePicker() {
  const all = types.value.value ?? [];
  const asked = shownType.value;
  const cpuKey = keyOf({name: cpuTime.type, unit: cpuTime.unit}, all);
  const isShown = (type: SampleType) => keyOf(type, all) === (asked || cpuKey);
  // If there are more types than the list shows, CPU time and the chosen type come first.
  const rank = (type: SampleType) => (isCpuTime(measureOf({...type, type: type.name})) ? 0 : isShown(type) ? 1 : 2);
  const offered = all.length > shownMax ? [...all].sort((a, b) => rank(a) - rank(b)) : all;
  const isOffered = offered.some(isShown);
  const chosen = view.value.type !== '';
  if (offered.length < 2 && (isOffered || !chosen)) return null;
  const label = (
    <>
      <span class="filter-name">Type</span>
      <span class="grow filter-choice">{choiceTitle(offered, asked)}</span>
      <Icon name="chevron" />
    </>
  );
  const option = (type: SampleType, close: () => void) => {
    const key = keyOf(type, offered);
    const choose = () => {
      // The default is not written to the address.
      const isDefault = key === (askedType('', offered) || cpuKey);
      setView({type: isDefault ? '' : key});
      close();
    };
    return (
      <li key={key}>
        <button type="button" aria-pressed={key === (asked || cpuKey)} data-testid="type-option" onClick={choose}>
          <span class="option-label">{titleOf(type)}</span>
          <span class="option-detail">
            {shownWord(type.unit)}
            {type.aggregation === 'last' && ', on average'}
          </span>
        </button>
      </li>
    );
  };
  return (
    <div class={`filter${chosen ? ' chosen' : ''}`} data-testid="type">
      <Popover name="Type" label={label}>
        {(close) => (
          <div class="options types">
            {offered.length === 0 && <p class="note">No type has samples in this range.</p>}
            <ul class="choices">{offered.slice(0, shownMax).map((type) => option(type, close))}</ul>
            {offered.length > shownMax && (
              <p class="note">
                {`${formatCount(offered.length - shownMax)} more types. ` +
                  'To choose one of them, write type=NAME:UNIT in the address of the page.'}
              </p>
            )}
          </div>
        )}
      </Popover>
      {chosen && (
        <button
          type="button"
          class="button icon-only clear"
          aria-label="Clear the type"
          onClick={() => setView({type: ''})}
        >
          <Icon name="close" />
        </button>
      )}
    </div>
  );
}
