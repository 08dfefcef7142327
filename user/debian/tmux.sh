# tmux: a server, windows and panes with shells in pseudo-terminals
set -e
export TERM=screen
until_shown() {
    until tmux capture-pane -p -t "$1" | grep -q "$2"; do sleep 0.1; done
}
tmux -f /dev/null new-session -d -x 80 -y 24 -s one 'bash --norc'
tmux send-keys -t one 'PS1="ready$ "; stty size; tty | wc -l' Enter
until_shown one '^24 80'
tmux split-window -t one -h 'bash --norc'
until [ "$(tmux list-panes -t one | wc -l)" = 2 ]; do sleep 0.1; done
tmux send-keys -t one.1 'stty size; echo $((6 * 7))' Enter
until_shown one.1 '^42'
tmux capture-pane -p -t one.1 | grep -E '^(24 [0-9]+|42)$'
tmux new-window -t one -n editor 'vim -u NONE -i NONE -n text'
until_shown one:editor '^~'
tmux send-keys -t one:editor 'iwritten in tmux' Escape ':wq' Enter
until [ -s text ]; do sleep 0.1; done
cat text
until [ "$(tmux list-windows -t one | wc -l)" = 1 ]; do sleep 0.1; done
tmux list-panes -t one -F '#{pane_index} #{pane_width}x#{pane_height}'
tmux kill-server
until ! pgrep -x tmux >/dev/null; do sleep 0.1; done
echo ended
