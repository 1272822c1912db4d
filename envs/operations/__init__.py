"""Operations research: stock, orders and demand."""
