# git: commits, clone over file:// and by hard links, rebase, merge, gc, fsck, bundle
set -e
export GIT_AUTHOR_DATE='1000000000 +0000' GIT_COMMITTER_DATE='1000000000 +0000'
git config --global user.name ebb && git config --global user.email ebb@localhost && git config --global init.defaultBranch main
git config --global advice.detachedHead false
git init -q tree && cd tree
cp -r /usr/share/perl5/Dpkg . && git add . && git commit -q -m first
for turn in 1 2 3 4 5 6; do seq $turn 3000 >numbers && echo $turn >>log && git add . && git commit -q -m "turn $turn"; done
git checkout -q -b side HEAD~3 && seq 7 >other && git add . && git commit -q -m side && git rebase -q main && git checkout -q main && git merge -q --ff-only side
cd .. && git clone -q file://$PWD/tree copy && git clone -q tree linked && git -C copy rev-parse HEAD && git -C linked rev-parse HEAD
cd copy && git gc -q --aggressive --prune=now && git fsck --full --strict --no-progress && git count-objects -v | grep -E '^(count|packs|garbage)'
git log --oneline | wc -l
git diff --stat HEAD~5 | tail -n 1
git bundle create -q ../all.bundle --all && git bundle verify -q ../all.bundle && echo bundled
git grep -c 'package Dpkg' -- Dpkg | wc -l
git worktree add -q ../work HEAD~2 && git -C ../work status --short | wc -l
git stash list; seq 5 >numbers; git stash -q; git status --short; git stash pop -q; git status --short
