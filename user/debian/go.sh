# Go builds and runs a program with goroutines and processes
set -e
mkdir hello && cd hello
cat >go.mod <<'G'
module hello
go 1.19
G
cat >main.go <<'G'
package main

import (
	"fmt"
	"os/exec"
	"sync"
)

func main() {
	var group sync.WaitGroup
	sums := make([]int, 8)
	for n := range sums {
		group.Add(1)
		go func(n int) {
			defer group.Done()
			for i := 0; i < 100000; i++ {
				sums[n] += i % (n + 1)
			}
		}(n)
	}
	group.Wait()
	out, err := exec.Command("echo", "from", "a", "process").Output()
	fmt.Println("hello", sums, string(out), err)
}
G
go build -o hello . && ./hello
go vet . && echo vetted
