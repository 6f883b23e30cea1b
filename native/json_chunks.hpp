// Reading a long JSON array (or lines of JSON) of records in chunks, on several threads.
//
// A chunk begins where `}`, `,` and `{` follow each other (or after a line's end), which is
// nearly always between two records. Each chunk is parsed on that guess, and the guess is
// checked: if the chunk before, known to begin right, is parsed to its very last byte and stops
// between two records, this one begins right too. Where a chunk does not (an array of objects
// nested in a record, or a real error), reading goes on in order from its beginning without
// guessing. Blocks are committed in file order, so the outcome does not depend on the threads.
// Reading may stop after some chunks and go on later from there, with the same outcome.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bounds.hpp"
#include "json_text.hpp"
#include "parallel.hpp"
#include "system_files.hpp"

namespace lvdet::json {

enum class Layout { array, lines };

// The text of a file is wrong at a byte of it, in a record of it.
struct FileError : std::runtime_error {
    FileError(const std::string& what, std::int64_t byte, std::int64_t row)
        : std::runtime_error(what), byte(byte), row(row) {}
    std::int64_t byte, row;
};

struct Cancelled : std::runtime_error {
    Cancelled() : std::runtime_error("cancelled") {}
};

// Shared with a watching thread: bytes read so far, a request to stop and, for a file that is still
// arriving, how many of its first bytes are there.
struct Control {
    std::int64_t* bytes = nullptr;
    std::int64_t* cancel = nullptr;
    std::int64_t* arrived = nullptr;
    void advance(std::int64_t count) const {
        if (bytes) std::atomic_ref(*bytes).fetch_add(count, std::memory_order_relaxed);
    }
    bool cancelled() const {
        return cancel && std::atomic_ref(*cancel).load(std::memory_order_relaxed) != 0;
    }
    void await(std::int64_t end) const {
        while (arrived && std::atomic_ref(*arrived).load(std::memory_order_acquire) < end) {
            if (cancelled()) throw Cancelled();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
};

struct File {
    int descriptor;
    std::int64_t size;
    Control control{};

    explicit File(int fd) : File(fd, system_files::size_of(fd)) {}
    // A file whose size is known from before: what was added since is not part of it.
    File(int fd, std::int64_t known_size) : descriptor(fd), size(known_size) {}
    // Up to `count` bytes from `offset`; fewer only at the end of the file.
    std::size_t read(std::int64_t offset, char* into, std::size_t count) const {
        count = std::min(count, static_cast<std::size_t>(std::max<std::int64_t>(size - offset, 0)));
        control.await(offset + static_cast<std::int64_t>(count));
        std::size_t done = 0;
        while (done < count) {
            const std::size_t got = system_files::read_at(
                descriptor, offset + static_cast<std::int64_t>(done), into + done, count - done);
            if (got == 0) break;
            done += got;
        }
        return done;
    }
};

// Text of a file from `offset` on, with the padding a Cursor needs.
class Buffer {
   public:
    void load(const File& file, std::int64_t offset, std::size_t count) {
        offset_ = offset;
        size_ = 0;
        grow(file, count);
    }
    // Reads on until `count` bytes are held, or the file ends.
    void grow(const File& file, std::size_t count) {
        if (text_.size() < count + kPadding) text_.resize(count + kPadding);
        const std::size_t wanted = count - size_;
        const std::size_t got =
            file.read(offset_ + static_cast<std::int64_t>(size_), text_.data() + size_, wanted);
        size_ += got;
        if (got < wanted && !reaches_end(file))
            throw FileError("the file shrank while it was being read",
                            offset_ + static_cast<std::int64_t>(size_), -1);
        std::memset(text_.data() + size_, 0, kPadding);
    }
    bool reaches_end(const File& file) const {
        return offset_ + static_cast<std::int64_t>(size_) >= file.size;
    }
    char* text() { return text_.data(); }
    std::size_t size() const { return size_; }
    std::int64_t offset() const { return offset_; }

   private:
    std::vector<char> text_;
    std::size_t size_ = 0;
    std::int64_t offset_ = 0;
};

inline constexpr auto kNowhere = static_cast<std::size_t>(-1);
inline constexpr std::size_t kLongestRecord = 1 << 25;  // bytes, for reading on several threads

// Where the first record after `from` seems to begin, or kNowhere if the text ends before.
inline std::size_t find_boundary(const char* text, std::size_t size, std::size_t from,
                                 Layout layout) {
    auto space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
    while (from < size) {
        const char wanted = layout == Layout::lines ? '\n' : '}';
        const void* hit = std::memchr(text + from, wanted, size - from);
        if (!hit) return kNowhere;
        std::size_t at = static_cast<std::size_t>(static_cast<const char*>(hit) - text) + 1;
        from = at;
        if (layout == Layout::lines) return at;
        while (at < size && space(text[at])) ++at;
        if (at >= size) return kNowhere;
        if (text[at] != ',') continue;
        ++at;
        while (at < size && space(text[at])) ++at;
        if (at >= size) return kNowhere;
        if (text[at] == '{') return at;
    }
    return kNowhere;
}

struct Stop {
    enum Status { end, closed, incomplete, wrong } status;
    const char* at;                  // end of the last whole record and its comma, or of the array
    const char* wrong_at = nullptr;  // for `wrong`
    const char* what = nullptr;      // for `wrong`
};

// Parses records until the text ends or the array closes. `block` must have
//   void record(Cursor&)   parse one object
//   void keep()            add it to the block, once it is known to be whole
//   void drop()            or forget it
// `first` says that no record came before in this array, so that `]` may follow at once;
// `last`, that the text does not go on behind its end, so that a line may end there.
template <class Block>
Stop parse_records(Block& block, const char* begin, const char* end, Layout layout, bool first,
                   bool last) {
    Cursor cursor(begin, end);
    const char* good = begin;
    try {
        for (;;) {
            cursor.skip_space();
            good = cursor.position();
            if (cursor.at_end()) return {Stop::end, good};
            if (layout == Layout::array && first && cursor.accept(']'))
                return {Stop::closed, cursor.position()};
            first = false;
            if (cursor.peek() != '{') cursor.fail("expected '{', the start of a record");
            block.record(cursor);
            bool closed = false;
            if (layout == Layout::array) {
                cursor.skip_space();
                closed = cursor.accept(']');
                if (!closed) cursor.expect(',', "expected ',' or ']' after a record");
            } else {
                while (cursor.peek() == ' ' || cursor.peek() == '\t' || cursor.peek() == '\r')
                    cursor.seek(cursor.position() + 1);
                if (!cursor.at_end() || !last) cursor.expect('\n', "expected one record per line");
            }
            block.keep();
            if (closed) return {Stop::closed, cursor.position()};
        }
    } catch (const Incomplete&) {
        block.drop();
        return {Stop::incomplete, good};
    } catch (const SyntaxError& error) {
        block.drop();
        return {.status = Stop::wrong, .at = good, .wrong_at = error.at, .what = error.what};
    }
}

// A place between two records: after the bracket of an array, a record and its comma, or a line.
struct Place {
    std::int64_t byte = 0;
    std::int64_t row = 0;   // how many records came before
    bool in_order = false;  // a chunk began wrong: from here on there is no guessing
    bool ended = false;     // no record follows: `byte` is behind the bracket, or the file's size
};

// Reads the records from `from` on and gives each block to `commit(block)`, in file order. Stops
// at the end, or after the first chunk that reaches byte `until`, and returns the place.
// `Block` also needs
//   void clear(std::int64_t byte, const char* text)   begin anew; `text` stands at `byte`
//   std::int64_t rows() const
// Each thread has a copy of `empty`.
template <class Block, class Commit>
Place read_records(const File& file, Place from, std::int64_t until, Layout layout, int threads,
                   std::size_t chunk, const Control& control, Commit&& commit,
                   const Block& empty = {}) {
    std::mutex guard;
    std::condition_variable turn_came;
    std::atomic<std::int64_t> next_chunk{0};
    std::atomic<bool> stop{from.in_order};
    std::int64_t turn = 0;
    Place place = from;
    const auto step = static_cast<std::int64_t>(chunk);
    until = std::min(until, file.size);

    const std::int64_t chunks = std::max<std::int64_t>((until - from.byte + step - 1) / step, 0);
    on_threads(workers_for(static_cast<std::size_t>(chunks), threads), [&](std::size_t) {
        Buffer buffer;
        Block block = empty;
        try {
            for (;;) {
                const std::int64_t index = next_chunk.fetch_add(1);
                const std::int64_t begin = from.byte + index * step;
                if (stop || begin >= until) return;
                constexpr std::size_t lookahead = 1 << 16;
                buffer.load(file, begin, chunk + lookahead);
                const auto boundary = [&](std::size_t after) {
                    for (;;) {
                        const std::size_t at =
                            find_boundary(buffer.text(), buffer.size(), after, layout);
                        if (at != kNowhere) return at;
                        if (buffer.reaches_end(file)) return buffer.size();
                        // Records this long are better read in order, by one thread.
                        if (buffer.size() > chunk + kLongestRecord) return kNowhere;
                        buffer.grow(file, buffer.size() * 2);
                    }
                };
                const std::size_t first = index == 0 ? 0 : boundary(0);
                const std::size_t last =
                    first == kNowhere ? kNowhere : std::max(first, boundary(chunk));
                char* const text = buffer.text();
                Stop result{Stop::incomplete, text};
                if (last != kNowhere) {
                    text[last] = '\0';
                    block.clear(begin + static_cast<std::int64_t>(first), text + first);
                    result = parse_records(block, text + first, text + last, layout,
                                           from.row == 0 && index == 0, true);
                }

                std::unique_lock lock(guard);
                turn_came.wait(lock, [&] { return stop || turn == index; });
                if (stop) return;
                if (control.cancelled()) throw Cancelled();
                if (result.status == Stop::end || result.status == Stop::closed) {
                    commit(block);
                    place.row += block.rows();
                    place.byte = begin + (result.at - text);
                    place.ended = result.status == Stop::closed;
                    control.advance(static_cast<std::int64_t>(last - first));
                } else {
                    place.in_order = true;
                }
                stop = place.ended || place.in_order;
                ++turn;
                turn_came.notify_all();
            }
        } catch (...) {
            std::lock_guard lock(guard);
            stop = true;
            turn_came.notify_all();
            throw;
        }
    });

    // In order, from the first chunk whose guess did not hold.
    Buffer buffer;
    Block block = empty;
    std::size_t window = chunk;
    while (place.in_order && !place.ended && place.byte < until) {
        if (control.cancelled()) throw Cancelled();
        buffer.load(file, place.byte, window);
        block.clear(place.byte, buffer.text());
        const Stop result = parse_records(block, buffer.text(), buffer.text() + buffer.size(),
                                          layout, place.row == 0, buffer.reaches_end(file));
        commit(block);
        place.row += block.rows();
        const std::int64_t done = result.at - buffer.text();
        control.advance(done);
        if (result.status == Stop::wrong)
            throw FileError(result.what, place.byte + (result.wrong_at - buffer.text()), place.row);
        if (result.status == Stop::incomplete && buffer.reaches_end(file))
            throw FileError("the file is truncated here", file.size, place.row);
        if (done == 0 && window > kLargestRecord) throw FileError(kTooBig, place.byte, place.row);
        window = done == 0 ? window * 2 : chunk;
        place.byte += done;
        place.ended = result.status == Stop::closed;
    }
    if (place.ended || place.byte < file.size) return place;
    if (layout == Layout::array)
        throw FileError("the file is truncated here: the list is not closed", file.size, place.row);
    place.ended = true;
    return place;
}

}  // namespace lvdet::json
