# Completion of gscope for fish 3.1 or later; printed by `gscope completion fish`.
# gscope prints a candidate a line: its kind, a tab, the text, a tab, a description.
function __gscope_complete
    set -l command (commandline -opc)[1]
    set -l line (commandline -cp | string collect)
    set -l token (commandline -ct)
    for item in (_GSCOPE_COMPLETE=fish_complete COMP_COMMAND=$command COMP_LINE=$line $command 2>/dev/null)
        set -l fields (string split \t -- $item)
        switch $fields[1]
            case plain open
                string join \t -- $fields[2..]
            case file dir
                # What fish offers behind any word; it resolves ~ and open quotes by itself.
                set -l path (string sub --start (math (string length -- $fields[2]) + 1) -- $token)
                set -l found (complete -C"'' $path")
                test $fields[1] = dir; and set found (string match --regex '.*/(?:\t.*)?$' -- $found)
                for each in $found
                    echo $fields[2]$each
                end
        end
    end
end
complete --command gscope --no-files --arguments '(__gscope_complete)'
