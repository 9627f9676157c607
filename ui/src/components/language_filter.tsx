// Chooses the languages of the stacks that the graph and the table show.
import {languageName, toggleLanguage} from '../model/languages.ts';
import {languages, setView, view} from '../state.ts';
import {Icon} from './icons.tsx';
import {Popover} from './popover.tsx';

export function LanguageFilter() {
  const chosen = view.value.language === '' ? [] : view.value.language.split(',');
  const offered = [...new Set([...languages.value, ...chosen])];
  if (offered.length === 0) return null;
  const choose = (language: string) => setView({language: toggleLanguage(view.value.language, language), zoom: ''});
  const label = (
    <>
      <span class="filter-name">Language</span>
      <span class="grow filter-choice">{chosen.map(languageName).join(', ') || 'All'}</span>
      <Icon name="chevron" />
    </>
  );
  return (
    <div class={`filter${chosen.length > 0 ? ' chosen' : ''}`} data-testid="filter-language">
      <Popover name="Language filter" label={label}>
        {() => (
          <div class="options languages">
            <ul class="choices">
              {offered.map((language) => (
                <li key={language}>
                  <button
                    type="button"
                    aria-pressed={chosen.includes(language)}
                    data-testid={`language-${language}`}
                    onClick={() => choose(language)}
                  >
                    <span class="option-label">{languageName(language)}</span>
                  </button>
                </li>
              ))}
            </ul>
            <p class="note">
              Shows the stacks with code of a chosen language in the graph and in the table. The timeline and the other
              cards show all stacks.
            </p>
          </div>
        )}
      </Popover>
      {chosen.length > 0 && (
        <button
          type="button"
          class="button icon-only clear"
          aria-label="Clear the language filter"
          onClick={() => setView({language: '', zoom: ''})}
        >
          <Icon name="close" />
        </button>
      )}
    </div>
  );
}
