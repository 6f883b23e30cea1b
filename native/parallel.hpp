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

// Starts work(1) … work(workers - 1), each on a thread; fewer where the system allows no more.
template <class Work>
void spawn(std::vector<std::thread>& threads, std::size_t workers, Work& work) {
    threads.reserve(workers);
    try {
        for (std::size_t i = 1; i < workers; ++i) threads.emplace_back(std::ref(work), i);
    } catch (const std::system_error&) {
        // What was started, and the caller, do all of the work.
    }
}

// Calls body(task) for every task in [0, tasks), on up to `threads` threads. Tasks are handed
// out one by one, so uneven ones balance; each must write only its own outputs, which makes the
// result independent of the number of threads. The first exception thrown is rethrown here.
// A body that takes (task, worker) is told which of the threads it runs on, from 0.
template <class Body>
void parallel_for(std::size_t tasks, int threads, Body&& body) {
    const std::size_t workers =
        std::min<std::size_t>(tasks, static_cast<std::size_t>(std::max(threads, 1)));
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex guard;
    auto work = [&](std::size_t worker) {
        try {
            for (std::size_t task; (task = next.fetch_add(1)) < tasks;) {
                if constexpr (std::is_invocable_v<Body, std::size_t, std::size_t>)
                    body(task, worker);
                else
                    body(task);
            }
        } catch (...) {
            next = tasks;
            std::lock_guard lock(guard);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    spawn(others, workers, work);
    work(0);
    for (auto& thread : others) thread.join();
    if (failure) std::rethrow_exception(failure);
}

// Calls body(begin, end) for blocks of [0, rows), on several threads.
template <class Body>
void in_blocks(std::size_t rows, int threads, Body&& body) {
    constexpr std::size_t kBlock = 1 << 16;
    parallel_for((rows + kBlock - 1) / kBlock, threads, [&](std::size_t block) {
        body(block * kBlock, std::min(rows, (block + 1) * kBlock));
    });
}

}  // namespace lvdet
