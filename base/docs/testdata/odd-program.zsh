#compdef odd-program
# Completion of odd-program for zsh; made by --print-docs zsh.

_odd_program_completion() {
  local context state state_descr line result=1
  typeset -A opt_args
  _arguments -S -C \
    '--level=[.dots in front, a '\''quote'\'', "two", a back\\slash, \[brackets\], a\:colon, $HOME, `date`, ~ and ^ and …]:LEVEL:(low high)' \
    '-l[.dots in front, a '\''quote'\'', "two", a back\\slash, \[brackets\], a\:colon, $HOME, `date`, ~ and ^ and …]:LEVEL:(low high)' \
    '--cert=[a file]:FILE:_files' \
    '--dir=[a directory]:DIR:_files -/' \
    '--live[a switch]' \
    '--no-live[not\: a switch]' \
    '*--export=[where to]:URL: ' \
    '--token=[a secret]:T: ' \
    '--help[print this help and exit]' \
    '1:command:->command' \
    '*::argument:->argument' && result=0
  case $state in
    command)
      local -a commands=(
        'files:Files\: \[all\] of them'
        'run:Runs one program'
      )
      _describe -t commands command commands && result=0 ;;
    argument)
      (( $+functions[_odd_program_completion-$words[1]] )) && _odd_program_completion-$words[1] && result=0 ;;
  esac
  return result
}

_odd_program_completion-files() {
  local context state state_descr line result=1
  typeset -A opt_args
  _arguments -S -C \
    '--json[the answer as it is]' \
    '1:command:->command' \
    '*::argument:->argument' && result=0
  case $state in
    command)
      local -a commands=(
        'push:Sends files'
      )
      _describe -t commands command commands && result=0 ;;
    argument)
      (( $+functions[_odd_program_completion-files-$words[1]] )) && _odd_program_completion-files-$words[1] && result=0 ;;
  esac
  return result
}

_odd_program_completion-files-push() {
  local context state state_descr line result=1
  typeset -A opt_args
  _arguments -S -C \
    '*:PATH:_files' && result=0
  return result
}

_odd_program_completion-run() {
  local context state state_descr line result=1
  typeset -A opt_args
  _arguments -S -C \
    '--format=[svg or html]:FORMAT:(svg html)' \
    '*:::command:_normal' && result=0
  return result
}

if [[ $funcstack[1] == _odd-program ]]; then
  _odd_program_completion "$@"
else
  compdef _odd_program_completion odd-program
fi
