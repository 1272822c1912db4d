"""The app ``shop``: products, a cart, and orders paid from the account."""

from __future__ import annotations

from .. import words
from ..rows import World, drop_row, edit_row, put_row
from .payments import move_money
from .row_api import (
    Failed,
    Rows,
    add_row,
    find_row,
    getter,
    lister,
    marker,
    one_of,
    reads,
    row_id,
    whole_number,
    writes,
)

PRODUCT, ORDER = row_id("products"), row_id("orders")
NAME, CATEGORY = one_of("name of a product", words.PRODUCTS), one_of("category", words.CATEGORIES)
QUANTITY = whole_number("how many", high=9)
ENTRY = ("name", "category", "price", "stock")
ORDER_ENTRY = ("product", "quantity", "total", "status")


@reads()
def shop_cart(world: World) -> Rows:
    """Show the cart."""
    return [{"product": product, **row} for product, row in world["cart"].items()]


@writes(product=PRODUCT, quantity=QUANTITY)
def shop_put_in_cart(world: World, product: int, quantity: int) -> World:
    """Put a product into the cart, this many instead of those that were in it."""
    find_row(world, "products", product)
    row = {"quantity": quantity}
    if world["cart"].get(product) == row:
        raise Failed("already_so")
    return put_row(world, "cart", product, row)


@writes(product=PRODUCT)
def shop_take_from_cart(world: World, product: int) -> World:
    """Take a product out of the cart."""
    find_row(world, "cart", product)
    return drop_row(world, "cart", product)


@writes()
def shop_empty_cart(world: World) -> World:
    """Take everything out of the cart."""
    if not world["cart"]:
        raise Failed("already_so")
    return {**world, "cart": {}}


@writes()
def shop_order(world: World) -> World:
    """Order all of the cart and pay. Fails without money or stock; an order for each product."""
    if not world["cart"]:
        raise Failed("cart_empty")
    for product, row in world["cart"].items():
        quantity = row["quantity"]
        offer = world["products"][product]
        if offer["stock"] < quantity:
            raise Failed("out_of_stock")
        total = quantity * offer["price"]
        world = edit_row(
            move_money(world, -total), "products", product, stock=offer["stock"] - quantity
        )
        world = add_row(
            world, "orders", product=product, quantity=quantity, total=total, status="processing"
        )
    return {**world, "cart": {}}


@writes(order=ORDER)
def shop_cancel_order(world: World, order: int) -> World:
    """Cancel an order in processing; the money comes back, and the stock."""
    return _undo_order(world, order, "processing", "cancelled")


@writes(order=ORDER)
def shop_return_order(world: World, order: int) -> World:
    """Return an order that was delivered; the money comes back, and the stock."""
    return _undo_order(world, order, "delivered", "returned")


def _undo_order(world: World, order: int, status: str, next_status: str) -> World:
    row = find_row(world, "orders", order)
    if row["status"] != status:
        raise Failed("wrong_status")
    stock = world["products"][row["product"]]["stock"] + row["quantity"]
    refunded = edit_row(move_money(world, row["total"]), "products", row["product"], stock=stock)
    return edit_row(refunded, "orders", order, status=next_status)


ROW_APIS = (
    lister(
        "shop_of_category", "List the products of a category.", "products", ENTRY, category=CATEGORY
    ),
    lister("shop_find", "Find products by name.", "products", ENTRY, name=NAME),
    getter("shop_get_product", "Show a product.", "products", (*ENTRY, "wished")),
    lister(
        "shop_wishes",
        "List the products on the wish list.",
        "products",
        ENTRY,
        lambda row: row["wished"],
    ),
    marker("shop_wish", "Put a product on the wish list.", "products", "wished", True),
    marker("shop_unwish", "Take a product off the wish list.", "products", "wished", False),
    shop_cart,
    shop_put_in_cart,
    shop_take_from_cart,
    shop_empty_cart,
    shop_order,
    lister("shop_orders", "List the orders.", "orders", ORDER_ENTRY),
    lister(
        "shop_orders_of", "List the orders of a product.", "orders", ORDER_ENTRY, product=PRODUCT
    ),
    getter("shop_get_order", "Show an order.", "orders", ORDER_ENTRY),
    shop_cancel_order,
    shop_return_order,
)
