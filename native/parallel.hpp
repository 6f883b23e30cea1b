// Running independent tasks on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

namespace lvdet {

// Threads that are waited for when it goes, also where an exception passes; std::jthread, which
// not every standard library has.
class JoinedThreads {
   public:
    JoinedThreads() = default;
    JoinedThreads(const JoinedThreads&) = delete;
    JoinedThreads& operator=(const JoinedThreads&) = delete;
    ~JoinedThreads() {
        for (std::thread& thread : threads_) thread.join();
    }
    // Starts work(1) … work(workers - 1), each on a thread; fewer where the system allows no more.
    template <class Work>
    void start(std::size_t workers, Work& work) {
        threads_.reserve(workers);
        try {
            for (std::size_t i = 1; i < workers; ++i) threads_.emplace_back(std::ref(work), i);
        } catch (const std::system_error&) {
            // What was started, and the caller, do all of the work.
        }
    }

   private:
    std::vector<std::thread> threads_;
};

// How many of `threads` have something to do.
inline std::size_t workers_for(std::size_t tasks, int threads) {
    return std::min<std::size_t>(tasks, static_cast<std::size_t>(std::max(threads, 1)));
}

// Calls work(worker) on up to `workers` threads at once, on this one as worker 0. The first
// exception thrown is rethrown here, once all have returned.
template <class Work>
void on_threads(std::size_t workers, Work&& work) {
    std::exception_ptr failure;
    std::mutex guard;
    auto guarded = [&](std::size_t worker) {
        try {
            work(worker);
        } catch (...) {
            std::lock_guard lock(guard);
            if (!failure) failure = std::current_exception();
        }
    };
    {
        JoinedThreads others;
        others.start(workers, guarded);
        guarded(0);
    }
    if (failure) std::rethrow_exception(failure);
}

// Calls body(task) for every task in [0, tasks), on up to `threads` threads. Tasks are handed
// out one by one, so uneven ones balance; each must write only its own outputs, which makes the
// result independent of the number of threads. The first exception thrown is rethrown here.
// A body that takes (task, worker) is told which of the threads it runs on, from 0 and below
// workers_for(tasks, threads).
template <class Body>
void parallel_for(std::size_t tasks, int threads, Body&& body) {
    std::atomic<std::size_t> next{0};
    on_threads(workers_for(tasks, threads), [&](std::size_t worker) {
        try {
            for (std::size_t task; (task = next.fetch_add(1)) < tasks;) {
                if constexpr (std::is_invocable_v<Body, std::size_t, std::size_t>)
                    body(task, worker);
                else
                    body(task);
            }
        } catch (...) {
            next = tasks;  // the others stop after what they are at
            throw;
        }
    });
}

inline constexpr std::size_t kBlockRows = 1 << 16;

template <std::size_t Size = kBlockRows>
constexpr std::size_t count_blocks(std::size_t rows) {
    return (rows + Size - 1) / Size;
}

// Calls body(begin, end) for blocks of `Size` of [0, rows), on several threads; block b begins at
// b * Size.
template <std::size_t Size = kBlockRows, class Body>
void in_blocks(std::size_t rows, int threads, Body&& body) {
    parallel_for(count_blocks<Size>(rows), threads, [&](std::size_t block) {
        body(block * Size, std::min(rows, (block + 1) * Size));
    });
}

}  // namespace lvdet
