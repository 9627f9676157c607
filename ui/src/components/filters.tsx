import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {
  describeChoice,
  dimensionLabels,
  filterOptions,
  sameMatchers,
  type Dimension,
  type FilterOption,
} from '../model/filter_options.ts';
import {formatCount} from '../model/format.ts';
import {formatValue, measureOf} from '../model/measure.ts';
import {formatSelector, parseSelector, replaceMatchers, type Matcher} from '../model/selector.ts';
import {queryError, selector, series, setView, view} from '../state.ts';
import {Icon} from './icons.tsx';
import {LanguageFilter} from './language_filter.tsx';
import {Popover} from './popover.tsx';
import {TypePicker} from './type_picker.tsx';

const shownMax = 200;

interface OptionListProps {
  dimension: Dimension;
  matchers: Matcher[];
  choose: (matchers: Matcher[]) => void;
}

function OptionList({dimension, matchers, choose}: OptionListProps) {
  const [needle, setNeedle] = useState('');
  const [active, setActive] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  // Focuses the field before the next key press arrives.
  useLayoutEffect(() => input.current?.focus(), []);
  useEffect(() => {
    list.current?.querySelector('[aria-current]')?.scrollIntoView({block: 'nearest'});
  }, [active]);

  const answer = series.value.value;
  if (!answer) return <p class="note">{series.value.error?.message ?? 'Loading…'}</p>;
  const {unit} = measureOf(answer);
  const lower = needle.trim().toLowerCase();
  const found = filterOptions(dimension, answer, matchers).filter((option) =>
    `${option.label} ${option.detail}`.toLowerCase().includes(lower),
  );
  const shown = found.slice(0, shownMax);
  const heaviest = Math.max(1, ...shown.map((option) => option.ns));
  const own = matchers.filter((m) => dimensionLabels[dimension].includes(m.label));
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) {
      setActive(Math.min(shown.length - 1, Math.max(0, active + step)));
    } else if (event.key === 'Enter') {
      const option = shown[active];
      if (option) choose(option.matchers);
    } else {
      return;
    }
    event.preventDefault();
  };
  const row = (option: FilterOption, index: number) => {
    const chosen = sameMatchers(own, option.matchers);
    return (
      <li key={`${option.section} ${option.label} ${option.detail}`}>
        {option.section !== '' && option.section !== shown[index - 1]?.section && (
          <p class="section">{option.section}</p>
        )}
        <button
          type="button"
          tabIndex={-1}
          aria-pressed={chosen}
          aria-current={index === active ? 'true' : undefined}
          onClick={() => choose(option.matchers)}
          onPointerMove={() => setActive(index)}
        >
          <span class="option-label">{option.label}</span>
          <span class="option-detail">{option.detail}</span>
          <span class="option-weight">{formatValue(option.ns, unit)}</span>
          <span class="option-bar" style={{width: `${(100 * option.ns) / heaviest}%`}} />
        </button>
      </li>
    );
  };
  return (
    <div class="options" onKeyDown={onKeyDown}>
      <input
        ref={input}
        type="search"
        placeholder={`Find a ${dimension}`}
        aria-label={`Find a ${dimension}`}
        value={needle}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => {
          setNeedle(event.currentTarget.value);
          setActive(0);
        }}
      />
      {shown.length === 0 && (
        <p class="note">{lower ? 'Nothing matches this text.' : `No ${dimension} had samples in this range.`}</p>
      )}
      <ul class="choices" ref={list}>
        {shown.map(row)}
      </ul>
      {(found.length > shown.length || answer.truncated) && (
        <p class="note">
          {found.length > shown.length && `${formatCount(found.length - shown.length)} more: type to narrow the list. `}
          {answer.truncated && 'A list has at most 1,000 entries: the largest. Select others in the selector field.'}
        </p>
      )}
    </div>
  );
}

function Filter({dimension}: {dimension: Dimension}) {
  const parsed = selector.value;
  const matchers = 'matchers' in parsed ? parsed.matchers : [];
  const choice = describeChoice(dimension, matchers);
  const set = (replacement: Matcher[]) =>
    setView({query: formatSelector(replaceMatchers(matchers, dimensionLabels[dimension], replacement)), zoom: ''});
  const title = dimension[0]!.toUpperCase() + dimension.slice(1);
  const label = (
    <>
      <span class="filter-name">{title}</span>
      <span class="grow filter-choice">{choice || 'All'}</span>
      <Icon name="chevron" />
    </>
  );
  return (
    <div class={`filter${choice ? ' chosen' : ''}`} data-testid={`filter-${dimension}`}>
      <Popover name={`${title} filter`} label={label}>
        {(close) => (
          <OptionList
            dimension={dimension}
            matchers={matchers}
            choose={(replacement) => {
              set(replacement);
              close();
            }}
          />
        )}
      </Popover>
      {choice && (
        <button
          type="button"
          class="button icon-only clear"
          aria-label={`Clear the ${dimension} filter`}
          onClick={() => set([])}
        >
          <Icon name="close" />
        </button>
      )}
    </div>
  );
}

function SelectorField() {
  const committed = view.value.query;
  const [text, setText] = useState(committed);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    setText(committed);
    setError(null);
  }, [committed]);
  const shownError = error ?? (text === committed ? queryError.value : null);
  const commit = (event: Event) => {
    event.preventDefault();
    const parsed = parseSelector(text);
    if ('error' in parsed) return setError(parsed.error);
    setError(null);
    setView({query: text.trim(), zoom: ''});
  };
  return (
    <form class="selector" onSubmit={commit}>
      <label class="visually-hidden" for="selector">
        Selector
      </label>
      <input
        id="selector"
        type="text"
        class="code"
        data-testid="selector"
        placeholder='{process_executable_name="…"}'
        value={text}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        aria-invalid={shownError !== null}
        aria-describedby="selector-error"
        maxLength={4096}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setError(null);
        }}
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            setText(committed);
            setError(null);
          }
        }}
      />
      <p id="selector-error" class="field-error" role="alert" data-testid="selector-error">
        {shownError}
      </p>
    </form>
  );
}

export function Filters() {
  return (
    <section class="filters" aria-label="Filters">
      <TypePicker />
      <Filter dimension="process" />
      <Filter dimension="thread" />
      <Filter dimension="service" />
      <Filter dimension="container" />
      <Filter dimension="host" />
      <LanguageFilter />
      <SelectorField />
    </section>
  );
}
