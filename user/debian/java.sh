# OpenJDK: javac, a program with threads, files and processes, jar, several collectors
set -e
cat >All.java <<'J'
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;

public class All {
    public static void main(String[] arguments) throws Exception {
        var pool = Executors.newFixedThreadPool(4);
        var sums = new ArrayList<Future<Long>>();
        for (int n = 1; n <= 4; n++) {
            final int step = n;
            sums.add(pool.submit(() -> LongStream.range(0, 300000).filter(i -> i % step == 0).sum()));
        }
        for (var sum : sums) System.out.println(sum.get());
        pool.shutdown();
        var directory = Files.createTempDirectory("all");
        for (int n = 0; n < 100; n++) Files.writeString(directory.resolve("f" + n), "line\n".repeat(n));
        try (var files = Files.list(directory)) {
            System.out.println(files.mapToLong(file -> file.toFile().length()).sum());
        }
        var process = new ProcessBuilder("sh", "-c", "cat; exit 3").start();
        process.getOutputStream().write("through a process\n".getBytes());
        process.getOutputStream().close();
        System.out.print(new String(process.getInputStream().readAllBytes()));
        System.out.println(process.waitFor());
        var kept = new ArrayList<byte[]>();
        for (int n = 0; n < 20000; n++) { var bytes = new byte[4096]; if (n % 100 == 0) kept.add(bytes); }
        System.out.println(kept.size());
        try { deep(0); } catch (StackOverflowError error) { System.out.println("stack overflow"); }
        try { System.out.println(((String) null).length()); } catch (NullPointerException error) { System.out.println("null"); }
    }
    static int deep(int n) { return deep(n + 1) + 1; }
}
J
javac All.java
for collector in Serial Parallel G1; do echo $collector; java -XX:+Use${collector}GC -Xmx256m All; done
printf 'Main-Class: All\n' >manifest && jar cfm all.jar manifest *.class && java -jar all.jar | tail -n 1
