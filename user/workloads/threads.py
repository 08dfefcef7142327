# Threads of Python: locks, conditions, barriers, queues and a pool. All that is printed is known beforehand.
import concurrent.futures
import queue
import threading

count = 0
lock = threading.Lock()


def add(times):
    global count
    for _ in range(times):
        with lock:
            count += 1


threads = [threading.Thread(target=add, args=(2000,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("counted", count)

work, results = queue.Queue(maxsize=5), queue.Queue()


def consume():
    while (number := work.get()) is not None:
        results.put(number * number)


consumers = [threading.Thread(target=consume) for _ in range(3)]
for consumer in consumers:
    consumer.start()
for number in range(500):
    work.put(number)
for _ in consumers:
    work.put(None)
for consumer in consumers:
    consumer.join()
print("squares", sum(results.get() for _ in range(500)), results.empty())

barrier, passed = threading.Barrier(4), []


def meet():
    for turn in range(50):
        barrier.wait()
        with lock:
            passed.append(turn)
        barrier.wait()


threads = [threading.Thread(target=meet) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("barrier", passed == sorted(passed), len(passed))

event = threading.Event()
print("time-out", event.wait(0.01))
threading.Timer(0.02, event.set).start()
print("event", event.wait(60))

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print("pool", sum(pool.map(lambda number: sum(range(number)), range(300))))
