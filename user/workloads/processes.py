# Processes of Python: a pool, pipes, queues, semaphores and shared memory.
import concurrent.futures
import multiprocessing
from multiprocessing import shared_memory


def work(number):
    return sum(divisor for divisor in range(1, number) if number % divisor == 0)


def answer(connection):
    while (text := connection.recv()) != "end":
        connection.send(text[::-1])


def fill(name, lock, index):
    memory = shared_memory.SharedMemory(name)
    for _ in range(100):
        with lock:
            memory.buf[0] = (memory.buf[0] + 1) % 200
    memory.buf[index] = index
    memory.close()


def produce(queue, index):
    for number in range(100):
        queue.put(index * 1000 + number)


if __name__ == "__main__":
    with multiprocessing.Pool(4) as pool:
        print("perfect", [n for n, s in enumerate(pool.map(work, range(600), chunksize=20)) if n == s and n > 0])
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=answer, args=(theirs,))
    process.start()
    for word in ("ebb", "tide", "end"):
        ours.send(word)
        if word != "end":
            print("reversed", ours.recv())
    process.join()
    print("ended", process.exitcode)
    lock = multiprocessing.Lock()
    memory = shared_memory.SharedMemory(create=True, size=4096)
    workers = [multiprocessing.Process(target=fill, args=(memory.name, lock, index)) for index in range(1, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("shared", bytes(memory.buf[:6]))
    memory.close()
    memory.unlink()
    queue = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=produce, args=(queue, index)) for index in range(3)]
    for worker in workers:
        worker.start()
    print("queued", sum(queue.get() for _ in range(300)))
    for worker in workers:
        worker.join()
    with concurrent.futures.ProcessPoolExecutor(3) as pool:
        print("futures", sum(pool.map(work, range(200), chunksize=10)))
