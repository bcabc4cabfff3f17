"""What a client gives to the proxy of the environment."""

import os
import unittest
from unittest import mock

import httpx
from gateway_of_tests import Answer, Gateway, Request

from redial import Client
from redial._http import may_go_through_a_proxy
from redial.errors import ConnectionFailed


async def ok(_: Request) -> Answer:
    return Answer(body={"tools": [], "next_page_token": ""})


async def refuse(_: Request) -> Answer:
    return Answer(status=403)


class ProxyTest(unittest.TestCase):
    def test_a_token_for_this_machine_is_not_given_to_a_proxy(self) -> None:
        with Gateway(ok) as proxy, Gateway(ok) as gateway:
            variables = {"HTTP_PROXY": proxy.url, "HTTPS_PROXY": proxy.url, "ALL_PROXY": proxy.url, "NO_PROXY": ""}
            with mock.patch.dict(os.environ, variables):
                with Client(gateway.url, token="rdl_canary") as client:
                    list(client.tools())
                # A gateway elsewhere that is not encrypted: there is none, and the proxy is not asked for it.
                with Client("http://0.0.0.0:1", token="rdl_canary", patience=0) as client:
                    self.assertRaises(ConnectionFailed, lambda: list(client.tools()))
            self.assertEqual(len(gateway.requests), 1)
            self.assertEqual(proxy.requests, [])

    def test_an_error_says_that_there_is_a_proxy(self) -> None:
        with (
            Gateway(refuse) as proxy,
            mock.patch.dict(os.environ, {"HTTPS_PROXY": proxy.url, "NO_PROXY": ""}),
            Client("https://gateway.invalid", token="rdl_canary", patience=0) as client,
            self.assertRaisesRegex(ConnectionFailed, "cannot be reached through the proxy of HTTPS_PROXY"),
        ):
            list(client.tools())

    def test_this_machine_has_many_names(self) -> None:
        for url in ("https://localhost:1", "https://LOCALHOST.", "https://127.9.9.9", "https://[::1]:8", "http://a.example"):
            self.assertFalse(may_go_through_a_proxy(httpx.URL(url)), url)
        for url in ("https://a.example", "https://10.0.0.1", "https://localhost.example"):
            self.assertTrue(may_go_through_a_proxy(httpx.URL(url)), url)
