#!/bin/sh
# The browser that the tests of reports look at pages with: Debian's, installed where it is missing
# and may be. Where it is not, those tests are skipped, and say so.
if command -v chromium > /dev/null; then exit 0; fi
if command -v apt-get > /dev/null && [ "$(id -u)" = 0 ]; then
    echo "chromium is missing: installing Debian's, for the tests of reports"
    if apt-get install -y -q --no-install-recommends chromium > /dev/null 2>&1 ||
        { apt-get update -q > /dev/null 2>&1 &&
            apt-get install -y -q --no-install-recommends chromium > /dev/null 2>&1; }; then
        exit 0
    fi
    echo "chromium could not be installed: tests that look at pages in it will be skipped"
else
    echo "chromium is missing and may not be installed here (that needs root and apt-get):"
    echo "tests that look at pages in it will be skipped"
fi
