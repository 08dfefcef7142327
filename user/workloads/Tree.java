// Threads of Java: a pool that forks and joins, parallel streams, locks and atomics.
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;

public class Tree {
    static class Sum extends RecursiveTask<Long> {
        final long from, to;

        Sum(long from, long to) {
            this.from = from;
            this.to = to;
        }

        @Override
        protected Long compute() {
            if (to - from < 1000) {
                long sum = 0;
                for (long i = from; i < to; i++)
                    sum += i * i;
                return sum;
            }
            Sum left = new Sum(from, (from + to) / 2), right = new Sum((from + to) / 2, to);
            left.fork();
            return right.compute() + left.join();
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("fork-join " + new ForkJoinPool(4).invoke(new Sum(0, 200000)));
        System.out.println("stream " + LongStream.range(0, 200000).parallel().filter(n -> n % 7 == 3).sum());
        var pool = Executors.newFixedThreadPool(4);
        var map = new ConcurrentHashMap<Integer, Integer>();
        var count = new AtomicLong();
        var latch = new CountDownLatch(8);
        Object lock = new Object();
        long[] plain = { 0 };
        for (int worker = 0; worker < 8; worker++)
            pool.submit(() -> {
                for (int i = 0; i < 2000; i++) {
                    count.incrementAndGet();
                    map.merge(i % 16, 1, Integer::sum);
                    synchronized (lock) {
                        plain[0]++;
                    }
                }
                latch.countDown();
            });
        latch.await();
        pool.shutdown();
        System.out.println("pool " + pool.awaitTermination(1, TimeUnit.MINUTES) + " " + count + " " + plain[0] + " " + map.get(5));
    }
}
