# Completion of odd-program for fish; made by --print-docs fish.
function __odd_program_completion_at
  set -l words (commandline -opc)
  set -e words[1]
  set -l command ''
  set -l skip 0
  for word in $words
    if test $skip = 1
      set skip 0
      continue
    end
    switch $word
      case --cert --dir --export --format --level --token -l
        set skip 1
      case --
        set command (string trim -- "$command --")
        break
      case '*'
        if contains -- (string trim -- "$command $word") 'files' 'files push' 'run'
          set command (string trim -- "$command $word")
        end
    end
  end
  test "$command" = "$argv[1]"
end

complete -c odd-program -f
complete -c odd-program -n '__odd_program_completion_at \'\'' -a files -d 'Files: [all] of them'
complete -c odd-program -n '__odd_program_completion_at \'\'' -a run -d 'Runs one program'
complete -c odd-program -n '__odd_program_completion_at \'\'' -l level -s l -x -a 'low high' -d '.dots in front, a \'quote\', "two", a back\\slash, [brackets], a:colon, $HOME, `date`, ~ and ^ and …'
complete -c odd-program -n '__odd_program_completion_at \'\'' -l cert -r -F -d 'a file'
complete -c odd-program -n '__odd_program_completion_at \'\'' -l dir -x -a '(__fish_complete_directories)' -d 'a directory'
complete -c odd-program -n '__odd_program_completion_at \'\'' -l live -d 'a switch'
complete -c odd-program -n '__odd_program_completion_at \'\'' -l no-live -d 'not: a switch'
complete -c odd-program -n '__odd_program_completion_at \'\'' -l export -x -d 'where to'
complete -c odd-program -n '__odd_program_completion_at \'\'' -l token -x -d 'a secret'
complete -c odd-program -n '__odd_program_completion_at \'\'' -l help -d 'print this help and exit'
complete -c odd-program -n '__odd_program_completion_at \'files\'' -a push -d 'Sends files'
complete -c odd-program -n '__odd_program_completion_at \'files\'' -l json -d 'the answer as it is'
complete -c odd-program -n '__odd_program_completion_at \'files push\'' -F
complete -c odd-program -n '__odd_program_completion_at \'run\'' -l format -x -a 'svg html' -d 'svg or html'
complete -c odd-program -n '__odd_program_completion_at \'run --\'' -a '(__fish_complete_command)'
